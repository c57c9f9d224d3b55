use std::time::Duration;

use leasehold_types::BootInstant;

/// How long a client waits for the first connections to its members.
///
/// All healthy members connect at about the same time. Once a majority can be asked, the others get as long
/// again. A member that connects later is asked from then on, but no operation waits for it.
#[derive(Debug, Default)]
pub(super) struct FirstConnections {
    /// When the first operation began.
    began: Option<BootInstant>,
    /// Until when operations wait; `None` before the first operation.
    end: Option<BootInstant>,
    has_majority: bool,
    is_over: bool,
}

impl FirstConnections {
    /// An operation begins.
    pub(super) fn begin(&mut self, now: BootInstant) {
        self.began.get_or_insert(now);
        self.end.get_or_insert(now + ALONE_MAX);
    }

    /// Returns for how long the client has waited.
    pub(super) fn lasted(&self, now: BootInstant) -> Duration {
        self.began.map_or(Duration::ZERO, |began| now.since(began))
    }

    /// Returns whether a majority was reached before.
    pub(super) fn has_majority(&self) -> bool {
        self.has_majority
    }

    /// A majority of the members can be asked from now on.
    pub(super) fn reached_majority(&mut self, now: BootInstant) {
        self.has_majority = true;
        let end = now + self.lasted(now).clamp(REST_MIN, REST_MAX);
        self.end = Some(self.end.map_or(end, |alone| alone.min(end)));
    }

    /// Returns whether operations wait for members without a first connection.
    pub(super) fn are_awaited(&self, now: BootInstant) -> bool {
        self.end.is_none_or(|end| now < end)
    }

    /// Returns whether the wait ended since the last call.
    pub(super) fn take_end(&mut self, now: BootInstant) -> bool {
        !self.are_awaited(now) && !std::mem::replace(&mut self.is_over, true)
    }

    /// Returns when the wait ends.
    pub(super) fn next_timeout(&self) -> Option<BootInstant> {
        self.end.filter(|_| !self.is_over)
    }
}

/// The longest wait without a majority.
const ALONE_MAX: Duration = Duration::from_millis(1_500);

/// The shortest and the longest wait for the other members, once a majority can be asked.
const REST_MIN: Duration = Duration::from_millis(20);
const REST_MAX: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> BootInstant {
        BootInstant::from_nanos(0) + Duration::from_millis(millis)
    }

    /// When the wait ends for a client whose majority is reached at that instant.
    fn end(majority: u64) -> Option<BootInstant> {
        let mut first = FirstConnections::default();
        first.begin(at(1_000));
        first.reached_majority(at(majority));
        first.next_timeout()
    }

    #[test]
    fn others_get_as_long_as_the_majority() {
        assert_eq!(end(1_050), Some(at(1_100)));
        assert_eq!(end(1_001), Some(at(1_021)));
        assert_eq!(end(1_900), Some(at(2_000)));
    }

    #[test]
    fn wait_without_majority_ends_once() {
        let mut first = FirstConnections::default();
        assert!(first.are_awaited(at(9_000)));
        first.begin(at(1_000));
        assert!(first.are_awaited(at(2_499)) && !first.take_end(at(2_499)));
        assert!(first.take_end(at(2_500)) && !first.take_end(at(2_500)));
        assert_eq!(first.next_timeout(), None);
    }
}
