use std::time::Duration;

use leasehold::clock::BootInstant;

/// How long a server has owed replies and sent nothing.
///
/// A router that forgot a connection tells neither side, so the client opens a new one when a limit is over.
#[derive(Debug)]
pub(crate) struct Silence {
    /// Since when the server owes replies and sends nothing.
    since: Option<BootInstant>,
    /// The shortest term of the requests since the server last owed nothing, and the limit that it leads to.
    term: Duration,
    limit: Duration,
    is_over: bool,
}

/// The limit of requests about no lease. A server that answers within it is slow, and not silent: a new connection
/// would be as slow, and need several answers.
const LIMIT_MAX: Duration = Duration::from_secs(4);

/// The limit of requests about a lease is this part of its term. Thus a lease survives a lost connection: the
/// first renewal is due after a third of the term.
const PART_OF_TERM: u32 = 6;

/// A server that forks or writes to its disk may be silent for this long.
const LIMIT_MIN: Duration = Duration::from_millis(500);

impl Silence {
    pub(crate) fn new() -> Self {
        Self {
            since: None,
            term: Duration::MAX,
            limit: LIMIT_MAX,
            is_over: false,
        }
    }

    /// Notes a request, and the term of its lease if it has one.
    pub(crate) fn asked(&mut self, term: Option<Duration>) {
        if let Some(term) = term.filter(|term| *term < self.term) {
            self.term = term;
            self.limit = LIMIT_MAX.min((term / PART_OF_TERM).max(LIMIT_MIN));
        }
    }

    /// The server sent something.
    pub(crate) fn heard(&mut self) {
        self.since = None;
        self.is_over = false;
    }

    /// Time passed. `owes` says whether the server owes replies.
    pub(crate) fn watch(&mut self, now: BootInstant, owes: bool) {
        if !owes {
            *self = Self::new();
            return;
        }
        let since = *self.since.get_or_insert(now);
        self.is_over |= since + self.limit <= now;
    }

    /// Returns the limit that is over, if it is.
    pub(crate) fn over(&self) -> Option<Duration> {
        self.is_over.then_some(self.limit)
    }

    /// Returns when the limit will be over.
    pub(crate) fn end(&self) -> Option<BootInstant> {
        let since = self.since.filter(|_| !self.is_over)?;
        Some(since + self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> BootInstant {
        BootInstant::from_nanos(0) + Duration::from_millis(millis)
    }

    /// Returns after how many milliseconds the server counts as silent.
    fn limit(terms: &[Option<Duration>]) -> u64 {
        let mut silence = Silence::new();
        terms.iter().for_each(|term| silence.asked(*term));
        silence.watch(at(0), true);
        let end = silence.end().expect("a limit");
        let millis = end.since(at(0)).as_millis() as u64;
        silence.watch(at(millis - 1), true);
        assert_eq!(silence.over(), None);
        silence.watch(at(millis), true);
        assert!(silence.over().is_some());
        assert_eq!(silence.end(), None);
        millis
    }

    #[test]
    fn limit_follows_the_shortest_term() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(limit(&[None]), 4_000);
        assert_eq!(limit(&[seconds(60)]), 4_000);
        assert_eq!(limit(&[None, seconds(6), seconds(60)]), 1_000);
        assert_eq!(limit(&[seconds(3)]), 500);
        assert_eq!(limit(&[seconds(1)]), 500);
    }

    #[test]
    fn each_byte_of_the_server_ends_a_silence() {
        let mut silence = Silence::new();
        silence.asked(None);
        silence.watch(at(0), true);
        silence.watch(at(4_000), true);
        silence.heard();
        assert_eq!(silence.over(), None);
        silence.watch(at(4_100), true);
        assert_eq!(silence.end(), Some(at(8_100)));
    }

    #[test]
    fn server_that_owes_nothing_may_be_silent() {
        let mut silence = Silence::new();
        silence.asked(Some(Duration::from_secs(3)));
        silence.watch(at(0), true);
        silence.heard();
        silence.watch(at(100), false);
        assert_eq!(silence.end(), None);
        silence.asked(None);
        silence.watch(at(9_000), true);
        assert_eq!(silence.end(), Some(at(13_000)));
    }
}
