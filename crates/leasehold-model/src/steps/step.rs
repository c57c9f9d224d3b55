//! The steps that may happen, and their text in a trace.

use std::fmt;

/// One step and its outcome. Attempts and members are counted from 0.
#[expect(missing_docs, reason = "each variant says what its fields are")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A client sends an attempt to its members, proposing its wall clock.
    Start { attempt: usize, proposal: u8 },
    /// A member takes the request for a lease.
    Take {
        attempt: usize,
        member: usize,
        granted: bool,
    },
    /// A member steps its counter and answers.
    Count {
        attempt: usize,
        member: usize,
        answer: u8,
        reply: AcquireReply,
    },
    /// A majority granted, and the greatest answer needs to be confirmed.
    Choose { attempt: usize, fence: u8 },
    /// A member takes the request to confirm.
    ConfirmFence {
        attempt: usize,
        member: usize,
        confirmed: bool,
    },
    /// The guard is valid.
    Win {
        attempt: usize,
        fence: u8,
        rounds: u8,
    },
    /// The guard sends a round of renewal.
    Renew { attempt: usize },
    /// A member takes the request to renew.
    Extend {
        attempt: usize,
        member: usize,
        found: FoundKey,
        counts: bool,
    },
    /// A majority still held the lease.
    StayValid { attempt: usize, repaired: bool },
    /// A member takes the request to put the lease back.
    PutBack {
        attempt: usize,
        member: usize,
        done: bool,
    },
    /// The attempt is given up or the guard released.
    End { attempt: usize },
    /// A member frees a lease.
    Free { attempt: usize, member: usize },
    /// A member's clock ends a lease.
    Expire { member: usize },
    /// A member executes a request a second time; its second answer is lost.
    Repeat { attempt: usize, member: usize },
    /// A member restarts with nothing.
    Restart { member: usize },
    /// A member's clock jumps so far forward that the lease there ends.
    Jump { member: usize },
    /// Time goes on.
    Tick,
}

/// What an answer to an acquire means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcquireReply {
    /// A grant that counts.
    Grant,
    /// A grant that counts, of a member whose wait is over.
    GrantOfBack,
    /// A grant of a member that is not trusted.
    Untrusted,
    /// Busy.
    Busy,
    /// Its attempt waits for no answer.
    Late,
}

/// What a renewal found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundKey {
    /// The lease.
    Own,
    /// A free key.
    Free,
    /// A free key, and it put the lease back.
    FreeFilled,
    /// Another lease.
    Other,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Start { attempt, proposal } => write!(f, "{} sent ({proposal})", a(attempt)),
            Self::Choose { attempt, fence } => write!(f, "{} must confirm {fence}", a(attempt)),
            Self::Win { attempt, fence, .. } => write!(f, "**{} valid {fence}**", a(attempt)),
            Self::Renew { attempt } => write!(f, "{} renews", a(attempt)),
            Self::StayValid { attempt, .. } => write!(f, "**{} valid still**", a(attempt)),
            Self::End { attempt } => write!(f, "{} ends", a(attempt)),
            Self::Expire { member } => write!(f, "lease runs out at {}", m(member)),
            Self::Restart { member } => write!(f, "{} restarts empty", m(member)),
            Self::Jump { member } => write!(f, "clock of {} jumps", m(member)),
            Self::Tick => write!(f, "tick"),
            Self::Take {
                attempt, member, ..
            }
            | Self::Count {
                attempt, member, ..
            }
            | Self::ConfirmFence {
                attempt, member, ..
            }
            | Self::Extend {
                attempt, member, ..
            }
            | Self::PutBack {
                attempt, member, ..
            }
            | Self::Free { attempt, member }
            | Self::Repeat { attempt, member } => {
                write!(f, "{} {} {}", a(attempt), self.request(), m(member))
            }
        }
    }
}

impl Step {
    /// The outcome of a request, before the member's name.
    fn request(&self) -> String {
        let text = match *self {
            Self::Take { granted: true, .. } => "taken at",
            Self::Take { .. } => "busy at",
            Self::Count { answer, reply, .. } => {
                return match reply {
                    AcquireReply::Grant | AcquireReply::GrantOfBack => {
                        format!("answered {answer} by")
                    }
                    AcquireReply::Untrusted => format!("answered {answer}, not trusted, by"),
                    AcquireReply::Busy | AcquireReply::Late => {
                        format!("counted {answer}, unheard, by")
                    }
                };
            }
            Self::ConfirmFence {
                confirmed: true, ..
            } => "confirmed at",
            Self::ConfirmFence { .. } => "refused the confirmation at",
            Self::Extend {
                found: FoundKey::Own,
                counts: true,
                ..
            } => "renewed at",
            Self::Extend {
                found: FoundKey::Own,
                ..
            } => "renewed, not counted, at",
            Self::Extend {
                found: FoundKey::Free,
                ..
            } => "found free at",
            Self::Extend {
                found: FoundKey::Other,
                ..
            } => "lost at",
            Self::Extend { .. } | Self::PutBack { done: true, .. } => "put back at",
            Self::PutBack { .. } => "not put back at",
            Self::Free { .. } => "frees the lease at",
            _ => "executed again by",
        };
        text.to_owned()
    }
}

/// The first attempt is A.
fn a(attempt: usize) -> char {
    char::from(b'A' + attempt as u8)
}

/// The first member is m1.
fn m(member: usize) -> String {
    format!("m{}", member + 1)
}
