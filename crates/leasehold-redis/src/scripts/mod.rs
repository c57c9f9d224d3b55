//! The Lua scripts, which hold all rules of the queue. `docs/wire.md` specifies them.

use std::sync::OnceLock;

use sha1_smol::Sha1;

/// A Lua script. A server stores it under the SHA-1 of its text until it restarts.
#[derive(Debug)]
pub struct Script {
    /// The file's name without its extension.
    pub name: &'static str,
    /// The text: the shared parts that it needs, followed by its own lines.
    pub text: &'static str,
    sha1: OnceLock<String>,
}

impl Script {
    /// Returns a script.
    pub const fn new(name: &'static str, text: &'static str) -> Self {
        Self {
            name,
            text,
            sha1: OnceLock::new(),
        }
    }

    /// Returns the name under which a server stores the script.
    pub fn sha1(&self) -> &str {
        if let Some(sha1) = self.sha1.get() {
            return sha1;
        }
        // Before the cell is locked: in a forked child it would stay locked if a thread of the parent was at it.
        let digest = Sha1::from(self.text).digest().to_string();
        self.sha1.get_or_init(|| digest)
    }
}

/// Defines scripts that consist of several files, one after the other.
macro_rules! scripts {
    ($($constant:ident = $name:literal [$($file:literal)*];)*) => {
        $(pub(crate) static $constant: Script = Script::new(
            $name,
            concat!(
                $(include_str!(concat!("parts/", $file, ".lua")),)*
                include_str!(concat!($name, ".lua")),
            ),
        );)*

        /// All scripts. A driver may load them when it connects.
        pub static SCRIPTS: &[&Script] = &[$(&$constant),*];
    };
}

scripts! {
    ACQUIRE = "acquire" ["state" "fence" "take" "shared" "queue" "refusal" "request"];
    FREE = "free" [];
    RELEASE = "release" ["state" "pass" "fence" "shared" "queue" "refusal" "request"];
    DEQUEUE = "dequeue" ["state" "queue"];
    RENEW = "renew" ["state" "each" "shared" "queue"];
    HEARTBEAT = "heartbeat" ["state" "each" "queue" "refusal"];
    DRAW_FENCE = "draw_fence" ["state" "fence"];
    CONFIRM_FENCE = "confirm_fence" ["state" "fence"];
    REPAIR = "repair" ["state" "each" "fence" "queue"];
    BREAK = "break" ["state" "shared" "queue"];
    MEMBER_RECORD_WRITE = "member_record_write" ["member_record"];
    MEMBER_RECORD_OBSERVE = "member_record_observe" ["member_record"];
    RECORD_OPEN = "record_open" ["record"];
    RECORD_READ = "record_read" ["record"];
    RECORD_WRITE = "record_write" ["record"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_cite_sections_of_the_specification() {
        let page = include_str!("../../../../docs/wire.md");
        let headings = page.lines().filter(|line| line.starts_with('#'));
        let headings: Vec<_> = headings
            .map(|line| line.trim_start_matches(['#', ' ']))
            .collect();
        for script in SCRIPTS {
            let cited = script
                .text
                .lines()
                .filter(|line| line.starts_with("-- Source"));
            let cited: Vec<_> = cited.collect();
            assert!(!cited.is_empty(), "{}", script.name);
            for line in cited {
                assert!(line.contains("docs/wire.md"), "{}: {line}", script.name);
                let sections = line.split('"').skip(1).step_by(2);
                for section in sections {
                    assert!(headings.contains(&section), "{}: {section}", script.name);
                }
            }
        }
    }
}
