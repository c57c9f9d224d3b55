use std::collections::BTreeMap;
use std::time::Duration;

use leasehold::{Owner, RESERVATION};

use super::waits::Asking;
use crate::sim::history::{Event, Told, What};

/// When waiters were asked to show themselves, since they keep others out of what these could share.
#[derive(Debug, Default)]
pub(super) struct Shows(BTreeMap<Owner, Duration>);

impl Shows {
    pub(super) fn see(&mut self, event: &Event) {
        if let What::Told {
            waiter,
            word: Told::Soon(Duration::ZERO),
            heard: true,
            ..
        } = event.what
        {
            self.0.insert(waiter, event.at);
        }
    }

    /// Whether one that died at `died` is still taken at `at` for one that was seen: it was asked when it
    /// lived, and is not asked again so soon.
    pub(super) fn is_seen(&self, asking: &Asking, died: Duration, at: Duration) -> bool {
        let asked = asking.waiter.and_then(|waiter| self.0.get(&waiter));
        asked.is_some_and(|asked| *asked <= died && at < *asked + RESERVATION)
    }
}

#[cfg(test)]
mod tests {
    use leasehold::Mode;

    use super::*;
    use crate::sim::checks::hand_over::check;
    use crate::sim::checks::invented::*;
    use crate::sim::history::Manner;

    /// Somebody dies that keeps a reader out, which comes in at `next`, while others read.
    fn kept_out(asked: u64, died: u64, killed: bool, next: u64) -> usize {
        let mut show = told(asked, 7);
        if let What::Told { word, .. } = &mut show.what {
            *word = Told::Soon(Duration::ZERO);
        }
        let mut dies = vec![show, crashed(died, 3, killed)];
        dies.sort_by_key(|event| event.at);
        let (key, stands) = (0, shared(&[(1, 9_000), (5, 9_000)]));
        let held = (0..3).map(|server| What::Holds {
            server,
            key,
            stands: stands.clone(),
        });
        let events = [
            vec![event(500, What::Calm)],
            in_mode(Mode::Shared, grant(1, 0, 0, 1_000, 9_000)),
            in_mode(Mode::Shared, grant(5, 2, 0, 1_000, 9_000)),
            held.map(|what| event(1_000, what)).collect(),
            waits(1_500, 7, 3, Manner::Patient),
            in_mode(Mode::Shared, waits(1_600, 2, 1, Manner::Patient)),
            queues(1_700, &[7, 2]),
            dies,
            vec![ended(3_000, 1), granted(next, 2, 9_000)],
        ];
        check(&events.concat()).len()
    }

    #[test]
    fn one_that_died_after_it_was_seen_costs_a_second_more() {
        let is_allowed = |asked, died, killed, next| {
            let over = kept_out(asked, died, killed, next + 1);
            assert_ne!(over, 0, "{asked} {died} {killed} {next}");
            kept_out(asked, died, killed, next) == 0
        };
        assert!(is_allowed(2_500, 2_600, false, 5_500));
        assert!(is_allowed(2_500, 2_600, true, 4_500), "its end is known");
        assert!(is_allowed(2_500, 2_400, false, 4_500), "it did not answer");
        assert!(is_allowed(1_900, 2_600, false, 4_500), "long ago");
    }
}
