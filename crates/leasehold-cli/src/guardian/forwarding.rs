use std::time::Duration;

use leasehold::clock::BootInstant;

/// Which signals of the wrapper are passed on to the command.
///
/// A service manager sends a signal to all processes of a service: to the wrapper, the guardian, and the
/// command. Only such a signal reaches the guardian, because it has a process group of its own. (In a nested
/// run it shares the group with the command, which then has the signal as well.) So a signal that the guardian
/// received, too, is not passed on. They arrive one after the other; hence a signal waits for [`DELAY`].
///
/// Pure: maps signals and the time to the signals that are due.
#[derive(Debug, Default)]
pub(super) struct Forwarding {
    /// The signals of the wrapper, in their order, and when they are due.
    waiting: Vec<(i32, BootInstant)>,
    /// The signals that this process received, and when they no longer matter.
    own: Vec<(i32, BootInstant)>,
}

/// How much later than the wrapper the guardian may receive the same signal.
const DELAY: Duration = Duration::from_millis(100);

/// How much later than the guardian the wrapper may report the same signal. Longer, because nothing waits for
/// it: a busy wrapper may take some time to read its signals.
const MEMORY: Duration = Duration::from_secs(1);

impl Forwarding {
    /// The wrapper received the signal.
    pub(super) fn requested(&mut self, signal: i32, now: BootInstant) {
        self.own.retain(|(_, end)| now < *end);
        if !self.own.iter().any(|(own, _)| *own == signal) {
            self.waiting.push((signal, now + DELAY));
        }
    }

    /// This process received the signal.
    pub(super) fn received(&mut self, signal: i32, now: BootInstant) {
        self.waiting.retain(|(waiting, _)| *waiting != signal);
        self.own.retain(|(own, _)| *own != signal);
        self.own.push((signal, now + MEMORY));
    }

    /// When the next signal is due.
    pub(super) fn next(&self) -> Option<BootInstant> {
        self.waiting.first().map(|(_, due)| *due)
    }

    /// Takes the signals that are due.
    pub(super) fn take_due(&mut self, now: BootInstant) -> Vec<i32> {
        let due = self.waiting.partition_point(|(_, due)| *due <= now);
        self.waiting
            .drain(..due)
            .map(|(signal, _)| signal)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: i32 = 15;
    const USR1: i32 = 10;

    fn at(millis: u64) -> BootInstant {
        BootInstant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn signals_of_the_wrapper_alone_keep_their_order() {
        let mut forwarding = Forwarding::default();
        forwarding.requested(USR1, at(0));
        forwarding.requested(TERM, at(10));
        assert_eq!(forwarding.next(), Some(at(100)));
        assert_eq!(forwarding.take_due(at(99)), [0; 0]);
        assert_eq!(forwarding.take_due(at(100)), [USR1]);
        assert_eq!(forwarding.take_due(at(110)), [TERM]);
        assert_eq!(forwarding.next(), None);
    }

    #[test]
    fn signal_to_all_processes_is_not_passed_on() {
        let mut wrapper_first = Forwarding::default();
        wrapper_first.requested(USR1, at(0));
        wrapper_first.requested(TERM, at(0));
        wrapper_first.received(TERM, at(90));
        assert_eq!(wrapper_first.take_due(at(200)), [USR1]);
        let mut guardian_first = Forwarding::default();
        guardian_first.received(TERM, at(0));
        guardian_first.requested(TERM, at(900));
        guardian_first.requested(TERM, at(901));
        guardian_first.requested(USR1, at(902));
        assert_eq!(guardian_first.take_due(at(2_000)), [USR1]);
    }

    #[test]
    fn old_signal_of_the_guardian_does_not_matter() {
        let mut forwarding = Forwarding::default();
        forwarding.received(TERM, at(0));
        forwarding.requested(TERM, at(1_000));
        assert_eq!(forwarding.take_due(at(1_100)), [TERM]);
    }
}
