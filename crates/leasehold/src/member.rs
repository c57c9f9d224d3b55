use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::card::{Card, Mark, RunId};
use crate::clock::WallTime;
use crate::error::Error;
use crate::fence::Fence;

/// What a member answers to the request to raise its counter to a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// The claim holds, and the counter is at least the fence; for a claim that is not exclusive, it
    /// was less before.
    Sealed,
    /// The claim holds together with others, and the counter had come to this number already, the
    /// fence or a greater one; nothing was changed.
    Taken(Fence),
    /// The claim does not hold here; nothing was changed.
    NotHeld,
}

/// What a member shows of itself with every answer: which data gave it, and what time it was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Its wall clock, read while it answered.
    pub clock: WallTime,
    /// The data that gave the answer.
    pub incarnation: Incarnation,
}

/// One run of a member, and the card that stood in it. Answers of different incarnations may come
/// from different data.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Incarnation(Arc<str>);

impl Incarnation {
    /// The incarnation of this run and the card with this mark.
    pub fn new(run: &RunId, mark: Option<&Mark>) -> Self {
        Self(format!("{run}/{}", mark.map_or("", Mark::as_str)).into())
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Incarnation({})", self.0)
    }
}

/// How a member is, by its own word.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Presence {
    /// The run of the server.
    pub run: RunId,
    /// Its wall clock.
    pub clock: WallTime,
    /// How long it has been running, by its wall clock; [`Duration::MAX`] for one that cannot have
    /// run before.
    pub uptime: Duration,
    /// Whether it keeps across a restart all that it acknowledges now, by its settings alone.
    /// [`will_remember`](Self::will_remember) says whether a quorum relies on that.
    pub durable: bool,
    /// Whether it was a replica during this run: its data may be older than what it acknowledged.
    pub was_replica: bool,
    /// Why it can be no member, if so: in words, such as that it evicts keys.
    pub unfit: Option<String>,
    /// Its card, if it has one.
    pub card: Option<Card>,
}

impl Presence {
    /// A member in this run, without a card; not durable, and fit.
    pub fn new(run: RunId, clock: WallTime, uptime: Duration) -> Self {
        Self {
            run,
            clock,
            uptime,
            durable: false,
            was_replica: false,
            unfit: None,
            card: None,
        }
    }

    /// The incarnation that answers show while nothing changes.
    pub fn incarnation(&self) -> Incarnation {
        Incarnation::new(&self.run, self.card.as_ref().map(Card::mark).as_ref())
    }
}

/// The name of a member within its set: `host:port` of its address, or what its `?id=` says.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(String);

impl MemberId {
    /// A name; the caller sees to it that it holds no credential.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemberId({})", self.0)
    }
}

/// Why one member did not count.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemberFailure {
    /// The member.
    pub id: MemberId,
    /// What went wrong there.
    pub error: Error,
    /// After how long it counts again, where that is known.
    pub counts_again: Option<Duration>,
}

impl MemberFailure {
    /// `id` failed with `error`.
    pub fn new(id: MemberId, error: Error) -> Self {
        Self {
            id,
            error,
            counts_again: None,
        }
    }
}

impl fmt::Display for MemberFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names_itself = self.error.store() == Some(self.id.as_str());
        if !names_itself {
            write!(f, "{}: ", self.id)?;
        }
        self.error.fmt(f)?;
        match self.counts_again {
            Some(span) => write!(f, " (no vote for {span:.0?})"),
            None => Ok(()),
        }
    }
}
