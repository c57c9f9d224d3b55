use std::borrow::Cow;
use std::cell::OnceCell;
use std::rc::Rc;

use leasehold_fakeredis::FakeRedis;
use leasehold_redis::scripts::{SCRIPTS, Script};

thread_local! {
    static UNCHANGED: OnceCell<Rc<FakeRedis>> = const { OnceCell::new() };
}

/// A change to the text of scripts, which proves that the checks notice it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mutation {
    /// The SHA-1 of each changed script, before and after, and its new text.
    changed: Vec<(&'static Script, String, String)>,
}

impl Mutation {
    /// Replaces `from` by `to` in all scripts.
    ///
    /// # Panics
    ///
    /// If no script contains `from`.
    #[cfg(test)]
    pub(crate) fn new(from: &str, to: &str) -> Self {
        let with = SCRIPTS.iter().filter(|script| script.text.contains(from));
        let changed: Vec<_> = with
            .map(|script| {
                let text = script.text.replace(from, to);
                (*script, sha1(&text), text)
            })
            .collect();
        assert!(!changed.is_empty(), "no script has {from:?}");
        Self { changed }
    }

    /// Returns a server that stores all scripts.
    pub(crate) fn keeper(&self) -> Rc<FakeRedis> {
        let load = || {
            let mut redis = FakeRedis::new(0, 0);
            let connection = redis.connect();
            for script in SCRIPTS {
                redis.execute(0, connection, &["SCRIPT", "LOAD", &self.text(script)]);
            }
            Rc::new(redis)
        };
        if self.changed.is_empty() {
            UNCHANGED.with(|unchanged| Rc::clone(unchanged.get_or_init(load)))
        } else {
            load()
        }
    }

    /// Returns the text of a script.
    pub(crate) fn text(&self, script: &'static Script) -> Cow<'static, str> {
        let mut changed = self.changed.iter();
        match changed.find(|(it, ..)| std::ptr::eq(*it, script)) {
            Some((.., text)) => Cow::Owned(text.clone()),
            None => Cow::Borrowed(script.text),
        }
    }

    /// Replaces the names of scripts in commands by those of the changed scripts.
    pub(crate) fn apply(&self, bytes: &mut [u8]) {
        for (script, sha1, _) in &self.changed {
            let old = script.sha1().as_bytes();
            let found = bytes.windows(old.len()).position(|window| window == old);
            if let Some(at) = found {
                bytes[at..at + old.len()].copy_from_slice(sha1.as_bytes());
            }
        }
    }
}

#[cfg(test)]
fn sha1(text: &str) -> String {
    use leasehold_fakeredis::Reply;

    let mut redis = FakeRedis::new(0, 0);
    let connection = redis.connect();
    match redis.execute(0, connection, &["SCRIPT", "LOAD", text]) {
        Reply::Bulk(sha1) => String::from_utf8_lossy(&sha1).into_owned(),
        other => panic!("{other:?}: {text}"),
    }
}
