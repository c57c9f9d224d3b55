//! The values of labels, and the results that they stand for.

use crate::store::{ReleaseReply, RenewReply};
use crate::types::{Error, LostReason};

/// All values of one label, each with its word.
pub(crate) trait LabelValue: Copy + 'static {
    /// The words, in the order of [`index`](Self::index).
    const VALUES: &'static [&'static str];

    fn index(self) -> usize;

    fn value(self) -> &'static str {
        Self::VALUES[self.index()]
    }
}

macro_rules! labels {
    ($(#[$about:meta])* $name:ident { $($(#[$when:meta])* $value:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($(#[$when])* $value,)+ }

        impl LabelValue for $name {
            const VALUES: &'static [&'static str] = &[$($word,)+];

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

labels! {
    /// How a call of `acquire` or `try_acquire` ended.
    WaitEnd {
        Granted = "granted",
        /// The caller did not want to wait.
        Busy = "busy",
        /// The longest wait of the caller was over.
        TimedOut = "timeout",
        Cancelled = "cancelled",
        /// No answer, or too few that count.
        Unavailable = "unavailable",
        /// A repetition does not change the answer.
        Refused = "refused",
    }
}

labels! {
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

labels! {
    /// How the renewal of one lease ended.
    RenewalEnd {
        Renewed = "renewed",
        Lost = "lost",
        Unknown = "unknown",
    }
}

labels! {
    /// How a release ended.
    ReleaseEnd {
        Released = "released",
        WasLost = "was_lost",
        /// A lost lock with a delay: nothing was sent.
        LeftClosed = "left_closed",
        Unknown = "unknown",
    }
}

labels! {
    /// How a hold ended.
    HoldEnd {
        Released = "released",
        Lost = "lost",
        /// The guard became a handle, or left the lock closed for a time.
        HandedOn = "handed_on",
    }
}

labels! {
    /// [`LostReason`], except the reason that only a forked child sees.
    Loss {
        Expired = "expired",
        Unreachable = "unreachable",
        Paused = "paused",
        Taken = "taken",
        Gone = "gone",
        Broken = "broken",
        MaxHold = "max_hold",
        GivenUp = "given_up",
        Closed = "closed",
    }
}

labels! {
    /// The state of a quorum's member, by its last answer.
    VoteState {
        /// Its answers count.
        Trusted = "trusted",
        /// It answers, but its answers do not count.
        Untrusted = "untrusted",
        /// Its last answer was an error, or did not come.
        Failing = "failing",
        /// It has not answered yet.
        Unknown = "unknown",
    }
}

impl WaitEnd {
    pub(crate) fn of<G>(answer: &Result<Option<G>, Error>) -> Self {
        match answer {
            Ok(Some(_)) => Self::Granted,
            Ok(None) => Self::Busy,
            Err(error) if error.is_busy() => Self::TimedOut,
            Err(error) if error.is_retryable() => Self::Unavailable,
            Err(_) => Self::Refused,
        }
    }
}

impl RenewalEnd {
    pub(crate) fn of(answer: &RenewReply) -> Self {
        match answer {
            RenewReply::Renewed(_) => Self::Renewed,
            RenewReply::Lost(_) => Self::Lost,
            RenewReply::Unknown(_) => Self::Unknown,
        }
    }
}

impl ReleaseEnd {
    pub(crate) fn of(answer: &Result<ReleaseReply, Error>) -> Self {
        match answer {
            Ok(ReleaseReply::Released) => Self::Released,
            Ok(ReleaseReply::WasLost) => Self::WasLost,
            Err(_) => Self::Unknown,
        }
    }
}

impl Loss {
    /// Returns `None` for the reason of a forked child, which counts nothing.
    pub(crate) fn of(reason: LostReason) -> Option<Self> {
        Some(match reason {
            LostReason::Expired => Self::Expired,
            LostReason::Unreachable => Self::Unreachable,
            LostReason::Paused => Self::Paused,
            LostReason::Taken => Self::Taken,
            LostReason::Gone => Self::Gone,
            LostReason::Broken => Self::Broken,
            LostReason::MaxHold => Self::MaxHold,
            LostReason::GivenUp => Self::GivenUp,
            LostReason::Closed => Self::Closed,
            // `Forked`. A further reason needs a label.
            _ => return None,
        })
    }
}
