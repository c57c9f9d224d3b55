//! The values of labels, and from what each one follows.

use crate::attempt::{Attempt, LostReason, Release, Renewal};
use crate::error::{Effect, Error};
use crate::patience::Answer;

/// All values of one label, each with its word.
pub(crate) trait Words: Copy + 'static {
    /// In the order of [`place`](Self::place).
    const WORDS: &'static [&'static str];

    fn place(self) -> usize;

    fn word(self) -> &'static str {
        Self::WORDS[self.place()]
    }
}

macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$when:meta])* $value:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($(#[$when])* $value,)+ }

        impl Words for $name {
            const WORDS: &'static [&'static str] = &[$($word,)+];

            fn place(self) -> usize {
                self as usize
            }
        }
    };
}

words! {
    /// How a call of `acquire` or `try_acquire` ended.
    WaitEnd {
        Granted = "granted",
        /// It did not want to wait.
        Busy = "busy",
        /// It had waited as long as it wanted to.
        TimedOut = "timeout",
        Cancelled = "cancelled",
        /// No answer, or too few that count.
        Unavailable = "unavailable",
        /// An answer that no repetition will change.
        Refused = "refused",
    }
}

words! {
    /// How one attempt ended.
    AttemptEnd {
        Granted = "granted",
        Busy = "busy",
        Failed = "failed",
        /// It may have taken effect.
        Unknown = "unknown",
        /// The wait was over, or the caller gone, before there was an answer.
        CutOff = "cut_off",
    }
}

words! {
    /// How the renewal of one lease ended.
    RenewalEnd {
        Renewed = "renewed",
        Lost = "lost",
        Unknown = "unknown",
    }
}

words! {
    /// How a release ended.
    ReleaseEnd {
        Released = "released",
        WasLost = "was_lost",
        /// A lost lock with a delay: nothing was sent.
        LeftShut = "left_shut",
        Unknown = "unknown",
    }
}

words! {
    /// How a hold ended.
    HoldEnd {
        Released = "released",
        Lost = "lost",
        /// Given up for a handle, or left shut for a span.
        HandedOn = "handed_on",
    }
}

words! {
    /// [`LostReason`], without what only a forked child is told.
    Loss {
        Expired = "expired",
        Unreachable = "unreachable",
        StoodStill = "stood_still",
        Taken = "taken",
        Gone = "gone",
        Broken = "broken",
        MaxHold = "max_hold",
        GivenUp = "given_up",
    }
}

words! {
    /// What a quorum thinks of a member, by the last that it heard.
    Standing {
        /// Its answers count.
        Counting = "counting",
        /// It answers, and that does not count.
        Distrusted = "distrusted",
        /// Its last answer was an error, or did not come.
        Failing = "failing",
        /// It was not asked yet.
        Unknown = "unknown",
    }
}

impl WaitEnd {
    pub(crate) fn of(answer: &Answer, is_heard: bool) -> Self {
        match answer {
            _ if !is_heard => Self::Cancelled,
            Ok(Some(_)) => Self::Granted,
            Ok(None) => Self::Busy,
            Err(error) if error.is_busy() => Self::TimedOut,
            Err(error) if error.is_retryable() => Self::Unavailable,
            Err(_) => Self::Refused,
        }
    }
}

impl AttemptEnd {
    pub(crate) fn of(answer: &Result<Attempt, Error>) -> Self {
        match answer {
            Ok(Attempt::Granted(_)) => Self::Granted,
            Ok(Attempt::Busy(_)) => Self::Busy,
            Err(error) if error.effect() == Effect::Unknown => Self::Unknown,
            Err(_) => Self::Failed,
        }
    }
}

impl RenewalEnd {
    pub(crate) fn of(answer: &Renewal) -> Self {
        match answer {
            Renewal::Renewed => Self::Renewed,
            Renewal::Lost(_) => Self::Lost,
            Renewal::Unknown(_) => Self::Unknown,
        }
    }
}

impl ReleaseEnd {
    pub(crate) fn of(answer: &Result<Release, Error>) -> Self {
        match answer {
            Ok(Release::Released) => Self::Released,
            Ok(Release::WasLost) => Self::WasLost,
            Err(_) => Self::Unknown,
        }
    }
}

impl Loss {
    /// `None` for what is said to a forked child, which counts nothing.
    pub(crate) fn of(reason: LostReason) -> Option<Self> {
        Some(match reason {
            LostReason::Expired => Self::Expired,
            LostReason::Unreachable => Self::Unreachable,
            LostReason::StoodStill => Self::StoodStill,
            LostReason::Taken => Self::Taken,
            LostReason::Gone => Self::Gone,
            LostReason::Broken => Self::Broken,
            LostReason::MaxHold => Self::MaxHold,
            LostReason::GivenUp => Self::GivenUp,
            LostReason::Forked => return None,
        })
    }
}
