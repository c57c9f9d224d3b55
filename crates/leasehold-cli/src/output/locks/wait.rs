use std::time::Duration;

use leasehold::look::Holder;
use serde_json::{Value, json};

use crate::output::locks::{holder_text, waiter_text};
use crate::output::outage::Outage;
use crate::output::time_text;

/// A wait for a lock, as a message shows it.
#[derive(Debug)]
pub(crate) struct Wait<'a> {
    pub(crate) lock: &'a str,
    pub(crate) holders: &'a [Holder],
    /// In the queue, from 1; `None` if there is no queue or it is not known.
    pub(crate) position: Option<u64>,
    /// Why it cannot be granted to any client, if so.
    pub(crate) outage: Option<&'a Outage>,
    pub(crate) so_far: Duration,
}

impl Wait<'_> {
    /// The state of the wait in one line.
    pub(crate) fn text(&self) -> String {
        let why = match self.outage {
            Some(outage) => format!(": {}", outage.summary()),
            None if self.holders.is_empty() => String::new(),
            None => format!(", held by {}", holder_text::phrases(self.holders)),
        };
        let (so_far, position) = (self.so_far(" for "), self.queued());
        format!("waiting{so_far} for lock {:?}{position}{why}", self.lock)
    }

    /// The same for a terminal. The process of the holder comes first, because a narrow terminal cuts off the end.
    pub(crate) fn status_line(&self) -> String {
        let position = self.queued();
        let why = match (self.outage, self.holders) {
            (Some(outage), _) => format!("{position}: {}", outage.summary()),
            (None, []) => position,
            (None, holders) => {
                let (who, details) = holder_text::processes(holders);
                format!(", held by {who}{position}{details}")
            }
        };
        format!("waiting{} for {:?}{why}", self.so_far(" "), self.lock)
    }

    /// One object for programs.
    pub(crate) fn json(&self) -> Value {
        let no_vote_for = self.outage.and_then(Outage::no_vote_for);
        json!({
            "event": "waiting",
            "lock": self.lock,
            "holders": self.holders.iter().map(holder_text::json).collect::<Vec<_>>(),
            "position": self.position,
            "reason": self.outage.map(ToString::to_string),
            "no_vote_for_ms": no_vote_for.map(time_text::millis),
            "waited_ms": time_text::millis(self.so_far),
        })
    }

    /// The whole seconds of the wait, after `before`.
    fn so_far(&self, before: &str) -> String {
        match self.so_far.as_secs() {
            0 => String::new(),
            secs => {
                let span = humantime::format_duration(Duration::from_secs(secs));
                format!("{before}{span}")
            }
        }
    }

    /// The position in the queue, as a part of a sentence.
    fn queued(&self) -> String {
        match self.position {
            Some(position) => format!(", {} in the queue", waiter_text::nth(position)),
            None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::locks::lock_table::tests::holder;
    use leasehold::Mode;

    fn wait<'a>(lock: &'a str, holders: &'a [Holder]) -> Wait<'a> {
        Wait {
            lock,
            holders,
            position: None,
            outage: None,
            so_far: Duration::ZERO,
        }
    }

    #[test]
    fn a_wait_says_how_long_and_for_whom() {
        let holders = [Holder::unknown(Mode::Exclusive)];
        let mut second = wait("deploy", &holders);
        second.position = Some(2);
        second.so_far = Duration::from_millis(61_900);
        assert_eq!(
            second.text(),
            "waiting for 1m 1s for lock \"deploy\", 2nd in the queue, held by a client of another \
             library"
        );
        assert_eq!(second.json()["waited_ms"], 61_900);
        assert_eq!(second.json()["position"], 2);
        assert_eq!(second.json()["holders"][0]["mode"], "exclusive");
        let first = wait("deploy", &[]).text();
        assert_eq!(first, r#"waiting for lock "deploy""#);
    }

    #[test]
    fn process_of_the_holder_fits_sixty_columns() {
        let mut holder = holder(100, "web-1", "./deploy.sh --all");
        holder.remaining = Some(Duration::from_millis(9_500));
        let line = |holders: &[Holder]| {
            let mut second = wait("backup", holders);
            second.position = Some(2);
            second.so_far = Duration::from_secs(12);
            second.status_line()
        };
        let one = line(&[holder.clone()]);
        assert_eq!(
            one,
            "waiting 12s for \"backup\", held by pid 4711 on web-1, 2nd in the queue, running \
             ./deploy.sh --all, user ann, expires in 9s unless renewed"
        );
        assert!("leasehold: ".len() + one.find(", 2nd").unwrap() <= 63);
        let others = [holder, Holder::unknown(Mode::Exclusive)];
        assert_eq!(
            line(&others),
            "waiting 12s for \"backup\", held by pid 4711 on web-1 and a client of another library, 2nd in \
             the queue"
        );
        assert_eq!(wait("backup", &[]).status_line(), r#"waiting for "backup""#);
    }
}
