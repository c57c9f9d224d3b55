//! How long the session lives at least: pure.
//!
//! The leader ends a session once it has not heard of it for the timeout. A client talks to one server. If that is a
//! follower, the leader learns of the client's requests only from the follower's answers to its *pings*, one every half
//! tick: neither a read nor a write reaches the leader's record of the session by itself. A follower that lost its
//! leader even goes on answering reads for some ticks, and an old leader goes on answering `sync`. So an answer alone
//! proves nothing. Three together do, on one connection:
//!
//! 1. A request, answered: the follower will report the session with its next answer to a ping.
//! 2. A request that the leader took part in, sent half a tick or more after that answer. Between the two, the leader
//!    has sent a ping. The follower answers the messages of the leader in order, so its answer to the ping left before
//!    the answer to this request.
//! 3. A transaction, sent after that answer: it follows the answer to the ping on its way to the leader, so the leader
//!    had heard of the session. A majority committed it, so the leader still was one. A later leader gives each session
//!    its whole timeout again.
//!
//! The session then lives for its timeout from when the first of the three was sent.
//!
//! Opening the session on a connection stands for the first two. A follower asks the leader whether the session is valid,
//! and the leader counts the timeout anew before it answers. The transaction proves that this leader still was one: a
//! follower that loses its leader closes its connections.
#![deny(clippy::disallowed_types)]

use std::collections::VecDeque;
use std::time::Duration;

use leasehold::clock::BootInstant;

use super::message::Reach;

/// What the answers of one connection prove.
#[derive(Debug)]
pub(crate) struct SessionTerm {
    timeout: Duration,
    /// The leader knows of the session since this instant or later.
    known_since: BootInstant,
    /// Requests that the leader took part in, in order, and not too close to each other.
    marks: VecDeque<Mark>,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    sent: BootInstant,
    answered: BootInstant,
}

impl SessionTerm {
    /// Returns the term of a session that the leader created or confirmed upon a request sent at `sent`.
    pub(crate) fn confirmed(sent: BootInstant, timeout: Duration) -> Self {
        Self {
            timeout,
            known_since: sent,
            marks: VecDeque::new(),
        }
    }

    /// Half a tick at most. The server grants no timeout below two ticks, unless its configuration says so.
    fn half_tick(&self) -> Duration {
        self.timeout / 4
    }

    /// How long after the last request of the kind the connection sends another one.
    pub(crate) fn keep_alive(timeout: Duration) -> Duration {
        timeout / 12
    }

    /// How much of the timeout a transaction proves at least, as long as all answers are prompt: three keep-alives and the
    /// half tick less. A lease is counted as this long, so that it has the same length each time.
    pub(crate) fn usable(timeout: Duration) -> Duration {
        timeout / 2
    }

    /// Records the answer to a request. If the request was a transaction, returns until when the session lives at
    /// least.
    pub(crate) fn answered(
        &mut self,
        reach: Reach,
        sent: BootInstant,
        answered: BootInstant,
    ) -> Option<BootInstant> {
        if reach == Reach::Server {
            return None;
        }
        if reach == Reach::Quorum {
            self.learn(sent);
        }
        let gap = self.timeout / 64;
        if self.marks.back().is_none_or(|last| last.sent + gap <= sent) {
            self.marks.push_back(Mark { sent, answered });
        }
        (reach == Reach::Quorum).then(|| self.known_since + self.timeout)
    }

    /// Moves the instant forward that a transaction sent at `sent` proves.
    fn learn(&mut self, sent: BootInstant) {
        let Some(second) = self.marks.iter().rfind(|mark| mark.answered <= sent) else {
            return;
        };
        let second = second.sent;
        let proved = |mark: &Mark| mark.answered + self.half_tick() <= second;
        let Some(position) = self.marks.iter().rposition(proved) else {
            return;
        };
        self.known_since = self.known_since.max(self.marks[position].sent);
        self.marks.drain(..position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(4_000);

    fn at(millis: u64) -> BootInstant {
        BootInstant::from_nanos(millis * 1_000_000)
    }

    fn term() -> SessionTerm {
        SessionTerm::confirmed(at(0), TIMEOUT)
    }

    #[test]
    fn reads_and_syncs_prove_nothing_alone() {
        let mut term = term();
        for millis in (0..9_000).step_by(333) {
            assert_eq!(
                term.answered(Reach::Server, at(millis), at(millis + 1)),
                None
            );
            assert_eq!(
                term.answered(Reach::Leader, at(millis), at(millis + 1)),
                None
            );
        }
        assert_eq!(term.known_since, at(0));
    }

    #[test]
    fn transaction_confirms_what_came_half_a_tick_before() {
        let mut term = term();
        let until = term.answered(Reach::Quorum, at(100), at(110));
        assert_eq!(until, Some(at(4_000)), "the connection alone");
        term.answered(Reach::Leader, at(1_109), at(1_120));
        let early = term.answered(Reach::Quorum, at(1_130), at(1_140));
        assert_eq!(early, Some(at(4_000)), "less than half a tick between");
        term.answered(Reach::Leader, at(1_200), at(1_300));
        let unanswered = term.answered(Reach::Quorum, at(1_299), at(1_310));
        assert_eq!(unanswered, Some(at(4_000)), "sent before the second answer");
        let proved = term.answered(Reach::Quorum, at(1_400), at(1_410));
        assert_eq!(proved, Some(at(4_100)));
    }

    #[test]
    fn two_transactions_confirm_no_read() {
        let mut term = term();
        term.answered(Reach::Server, at(3_000), at(3_001));
        term.answered(Reach::Quorum, at(8_000), at(8_001));
        let until = term.answered(Reach::Quorum, at(8_002), at(8_003));
        assert_eq!(until, Some(at(4_000)));
    }

    #[test]
    fn steady_keep_alives_leave_half_of_the_timeout() {
        let mut term = term();
        let pause = SessionTerm::keep_alive(TIMEOUT).as_millis() as u64;
        for number in 1..100 {
            let sent = number * pause;
            term.answered(Reach::Leader, at(sent), at(sent + 5));
        }
        let sent = at(100 * pause - 1);
        let until = term.answered(Reach::Quorum, sent, sent).unwrap();
        assert!(until.since(sent) > TIMEOUT / 2, "{:?}", until.since(sent));
    }

    #[test]
    fn many_requests_are_few_marks() {
        let mut term = term();
        for micros in 0..100_000 {
            let sent = BootInstant::from_nanos(micros * 100_000);
            term.answered(Reach::Quorum, sent, sent);
        }
        assert!(term.marks.len() < 64, "{}", term.marks.len());
        assert!(term.known_since > at(8_700));
    }
}
