use leasehold::{Ended, Error, Guard, GuardSet, Lock, LockSet};

use super::history::{Freed, Manner};
use std::time::Duration;

/// What a program asks for: one lock, or several as one.
pub(crate) enum Wanted {
    One(Lock),
    All(LockSet),
}

/// What it gets.
pub(crate) enum Grip {
    One(Guard),
    All(GuardSet),
}

impl Wanted {
    pub(crate) async fn ask(self, manner: Manner, limit: Duration) -> Result<Option<Grip>, Error> {
        match self {
            Self::One(lock) => {
                let lock = match manner {
                    Manner::Once => return Ok(lock.try_acquire().await?.map(Grip::One)),
                    Manner::Limited => lock.wait(limit),
                    Manner::Patient => lock,
                    Manner::Barging => lock.barging(true),
                };
                lock.acquire().await.map(|guard| Some(Grip::One(guard)))
            }
            Self::All(set) => {
                let set = match manner {
                    Manner::Once => return Ok(set.try_acquire().await?.map(Grip::All)),
                    Manner::Limited => set.wait(limit),
                    Manner::Patient => set,
                    Manner::Barging => set.barging(true),
                };
                set.acquire().await.map(|guards| Some(Grip::All(guards)))
            }
        }
    }
}

impl Grip {
    /// In the order of their keys.
    pub(crate) fn guards(&self) -> Vec<&Guard> {
        match self {
            Self::One(guard) => vec![guard],
            Self::All(set) => set.guards().collect(),
        }
    }

    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Self::One(guard) => guard.is_valid(),
            Self::All(set) => set.is_valid(),
        }
    }

    /// Resolves when it says by itself that it is lost.
    pub(crate) async fn lost(&self) {
        match self {
            Self::One(guard) => guard.lost_token().cancelled().await,
            Self::All(set) => set.lost_token().cancelled().await,
        }
    }

    /// Gives it back; what came of it, in the order of the keys.
    pub(crate) async fn release(self) -> Vec<Freed> {
        match self {
            Self::One(guard) => vec![freed(guard.release().await)],
            Self::All(set) => {
                let outcomes = set.release().await;
                outcomes.into_iter().map(|(_, it)| freed(it)).collect()
            }
        }
    }
}

fn freed(outcome: Result<Ended, Error>) -> Freed {
    match outcome {
        Ok(Ended::Released | Ended::StillShared) => Freed::Released,
        Ok(_) => Freed::WasLost,
        Err(_) => Freed::Unknown,
    }
}
