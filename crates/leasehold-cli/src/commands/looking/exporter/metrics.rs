//! What the exporter says of a store, in the text format of Prometheus.

use std::fmt::Write as _;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use leasehold::clock::{Clock as _, SystemClock, WallTime};
use leasehold::look::{ListedLock, Pattern, Waiter};
use leasehold::member::MemberHealth;
use leasehold::{Client, Error, Key};

use crate::output::locks::minority;

/// One look at a store.
#[derive(Debug, Default)]
pub(super) struct Sample {
    /// `None` if the store could not be asked.
    locks: Option<Locks>,
    /// The servers of a quorum, each with whether it has a vote.
    members: Vec<(String, bool)>,
    took: Duration,
}

#[derive(Debug, Default)]
struct Locks {
    held: usize,
    holders: usize,
    /// Since when the oldest holder has its lock.
    oldest_holder: Option<WallTime>,
    waiters: usize,
    /// Since when the client that came first waits.
    oldest_waiter: Option<WallTime>,
    /// Whether there are more locks than were read.
    more: bool,
}

/// How many queues are read at once.
const QUEUES_AT_ONCE: usize = 16;

impl Sample {
    /// Asks the store for the first `limit` locks that match, and for the waiters of each.
    pub(super) async fn take(client: &Client, pattern: &Pattern, limit: usize) -> Self {
        let began = SystemClock.now();
        let (locks, health) =
            futures_util::future::join(Locks::read(client, pattern, limit), client.health()).await;
        let members = health.unwrap_or_default();
        let vote = |member: &MemberHealth| {
            let has_vote = member.status.is_ok() && member.untrusted_reason.is_none();
            (member.id.as_str().to_owned(), has_vote)
        };
        Self {
            locks: locks.ok(),
            members: members.iter().map(vote).collect(),
            took: SystemClock.now().since(began),
        }
    }

    /// Returns the metrics of the store called `store`.
    pub(super) fn text(&self, store: &str) -> String {
        let store = escaped(store);
        let mut text = String::new();
        let mut gauge = |name: &str, help: &str, labels: &str, value: f64| {
            let name = format!("leasehold_store_{name}");
            if !text.contains(&format!("# TYPE {name} ")) {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
            }
            let _ = writeln!(text, "{name}{{store=\"{store}\"{labels}}} {value}");
        };
        let is_up = f64::from(u8::from(self.locks.is_some()));
        gauge("up", "Whether the store answered.", "", is_up);
        let took = self.took.as_secs_f64();
        gauge(
            "read_seconds",
            "How long it took to ask the store.",
            "",
            took,
        );
        if let Some(locks) = &self.locks {
            let count = |count: usize| count as f64;
            let is_cut = f64::from(u8::from(locks.more));
            gauge("locks_held", "Locks that are held.", "", count(locks.held));
            gauge(
                "holders",
                "Holders of these locks.",
                "",
                count(locks.holders),
            );
            gauge(
                "waiters",
                "Clients that wait for these locks.",
                "",
                count(locks.waiters),
            );
            // A point in time stays right when the text is old, and has no value if there is no holder or waiter.
            if let Some(since) = locks.oldest_holder {
                gauge(
                    "oldest_holder_timestamp_seconds",
                    "When the oldest holder took its lock.",
                    "",
                    unix_seconds(since),
                );
            }
            if let Some(since) = locks.oldest_waiter {
                gauge(
                    "oldest_waiter_timestamp_seconds",
                    "When the client that came first began to wait.",
                    "",
                    unix_seconds(since),
                );
            }
            gauge(
                "truncated",
                "Whether there are more locks than were read.",
                "",
                is_cut,
            );
        }
        for (member, has_vote) in &self.members {
            let label = format!(",member=\"{}\"", escaped(member));
            let has_vote = f64::from(u8::from(*has_vote));
            gauge(
                "member_has_vote",
                "Whether the server has a vote.",
                &label,
                has_vote,
            );
        }
        text
    }
}

impl Locks {
    async fn read(client: &Client, pattern: &Pattern, limit: usize) -> Result<Self, Error> {
        let listing = minority::require_majority(client.list_locks(pattern, limit).await?)?;
        let names: Vec<Key> = listing.locks.iter().map(|lock| lock.key.clone()).collect();
        let queues = stream::iter(names)
            .map(|name| {
                let client = client.clone();
                async move { client.waiters(name.as_str()).await }
            })
            .buffered(QUEUES_AT_ONCE);
        let queues: Vec<_> = queues.collect().await;
        let waiters = queues.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
        Ok(Self::of(&listing.locks, &waiters, listing.more))
    }

    fn of(locks: &[ListedLock], waiters: &[Waiter], more: bool) -> Self {
        let holders = || locks.iter().flat_map(|lock| &lock.holders);
        let since = holders().filter_map(|sight| sight.holder.since);
        let waiting = waiters.iter().map(|waiter| waiter.ticket.since);
        Self {
            held: locks.len(),
            holders: holders().count(),
            oldest_holder: since.min(),
            waiters: waiters.len(),
            oldest_waiter: waiting.min(),
            more,
        }
    }
}

/// Seconds since 1970.
fn unix_seconds(time: WallTime) -> f64 {
    time.as_micros() as f64 / 1e6
}

/// The text of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn each_metric_has_one_type_line() {
        let sample = Sample {
            locks: Some(Locks {
                held: 2,
                oldest_holder: Some(WallTime::from_micros(1_795_745_000_500_000)),
                ..Locks::default()
            }),
            members: vec![("a:1".into(), true), ("b\"\\".into(), false)],
            took: Duration::from_millis(20),
        };
        let text = sample.text("quorum \"x\"");
        for line in [
            "leasehold_store_up{store=\"quorum \\\"x\\\"\"} 1",
            "leasehold_store_locks_held{store=\"quorum \\\"x\\\"\"} 2",
            "leasehold_store_oldest_holder_timestamp_seconds{store=\"quorum \\\"x\\\"\"} 1795745000.5",
            "leasehold_store_member_has_vote{store=\"quorum \\\"x\\\"\",member=\"b\\\"\\\\\"} 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\nin\n{text}");
        }
        let types = text
            .matches("# TYPE leasehold_store_member_has_vote ")
            .count();
        assert_eq!(types, 1, "{text}");
    }

    #[test]
    fn page_has_every_metric_and_alerts_no_other() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/monitoring");
        let file = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        let page = file("README.md");
        let sample = Sample {
            locks: Some(Locks {
                oldest_holder: Some(WallTime::from_micros(1)),
                oldest_waiter: Some(WallTime::from_micros(1)),
                ..Locks::default()
            }),
            members: vec![("a".into(), true)],
            took: Duration::ZERO,
        };
        let text = sample.text("x");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let names: Vec<_> = lines.filter_map(|line| line.split('{').next()).collect();
        assert_eq!(names.len(), 9, "{text}");
        for name in &names {
            assert!(page.contains(&format!("| `{name}` |")), "{name}");
        }
        for name in ["alerts.yml", "alerts-test.yml", "grafana.json"] {
            let text = file(name);
            let words = text.split(|it: char| !it.is_ascii_lowercase() && it != '_');
            let used: Vec<_> = words.filter(|it| it.starts_with("leasehold_")).collect();
            assert!(!used.is_empty(), "{name}");
            let unknown = used.into_iter().find(|it| !names.contains(it));
            assert_eq!(unknown, None, "{name}");
        }
    }

    #[test]
    fn silent_store_is_down_and_says_no_more() {
        let text = Sample::default().text("x");
        assert!(
            text.contains("leasehold_store_up{store=\"x\"} 0\n"),
            "{text}"
        );
        assert!(!text.contains("locks_held"), "{text}");
    }
}
