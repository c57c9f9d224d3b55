use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::Violation;
use crate::sim::history::{Event, What};

/// I10: no client asks a server how it is more often than anybody needs to know.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let mut latest = BTreeMap::<(usize, usize), VecDeque<Duration>>::new();
    let mut told = BTreeSet::new();
    let mut violations = Vec::new();
    for Event { at, what } in events {
        let What::Looked { server, client } = *what else {
            continue;
        };
        let looks = latest.entry((client, server)).or_default();
        looks.push_back(*at);
        while looks.front().is_some_and(|first| *at - *first > SPAN) {
            looks.pop_front();
        }
        if looks.len() > LOOKS_MAX && told.insert((client, server)) {
            let count = looks.len();
            let text =
                format!("client {client} looked at server {server} {count} times in {SPAN:?}");
            violations.push(Violation {
                invariant: "I10",
                at: *at,
                text,
            });
        }
    }
    violations
}

const SPAN: Duration = Duration::from_secs(1);

/// Each time anything changes on one of five members, all others may have to be told.
const LOOKS_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::checks::invented::*;

    #[test]
    fn a_flood_of_questions_is_rejected_once() {
        let looks = |pause: u64| {
            let look = |n| {
                event(
                    n * pause,
                    What::Looked {
                        server: 0,
                        client: 0,
                    },
                )
            };
            check(&(0..200).map(look).collect::<Vec<_>>()).len()
        };
        assert_eq!((looks(20), looks(5)), (0, 1));
    }
}
