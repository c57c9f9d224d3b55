use std::time::Duration;

use leasehold::clock::BootInstant;

/// How long a server has left requests without an answer.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// How often something had come when the oldest of these requests was sent, and when that was.
    since: Option<(u64, BootInstant)>,
}

impl Silence {
    /// A request is sent. Something has come `heard` times until now.
    pub(crate) fn sent(&mut self, heard: u64, now: BootInstant) {
        if self.since.is_none_or(|(before, _)| before != heard) {
            self.since = Some((heard, now));
        }
    }

    /// Returns how long the oldest request has waited, if nothing came since it was sent.
    pub(crate) fn lasts(&self, heard: u64, now: BootInstant) -> Duration {
        let oldest = self.since.filter(|(before, _)| *before == heard);
        oldest.map_or(Duration::ZERO, |(_, sent)| now.since(sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_counts_from_the_oldest_request() {
        let second = |number: u64| BootInstant::from_nanos(number * 1_000_000_000);
        let seconds = Duration::from_secs;
        let mut silence = Silence::default();
        assert_eq!(silence.lasts(0, second(50)), seconds(0), "nothing was sent");
        silence.sent(0, second(60));
        assert_eq!(silence.lasts(0, second(61)), seconds(1));
        silence.sent(0, second(62));
        assert_eq!(silence.lasts(0, second(63)), seconds(3));
        assert_eq!(silence.lasts(1, second(64)), seconds(0), "an answer came");
        silence.sent(1, second(90));
        assert_eq!(silence.lasts(1, second(91)), seconds(1), "idle before");
    }
}
