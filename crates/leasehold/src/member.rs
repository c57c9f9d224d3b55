use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::BoxFuture;
use crate::attempt::{Attempt, Release, Renewal};
use crate::card::{Card, CardEdit, Life, Mark, RunId};
use crate::claim::{Claim, Held};
use crate::clock::WallTime;
use crate::error::Error;
use crate::fence::Fence;
use crate::key::Key;
use crate::owner::Owner;
use crate::queue::{Departure, Ear, Turn};
use crate::store::Store;

/// A store that can be one of a quorum's members: it adds the second round of the fence, what the
/// quorum needs to know before it counts an answer, and healing.
///
/// # Contract
///
/// Beyond those of [`Store`]:
///
/// - **M1** `seal` raises the counter to at least the fence if, and only if, the claim holds there.
/// - **M2** A sealed fence is never granted again: every later grant of the key is greater.
/// - **M13** A claim that is not exclusive seals a fence only where that raises the counter; elsewhere it
///   is [`Seal::Taken`]. So of all claims that are held together one alone has each number there,
///   whether it drew or sealed it.
/// - **M3** A sample's incarnation is that of the data that gave the answer: it changes whenever
///   the member restarted, lost its card, or had its life or its set written anew, and at no other
///   time. `presence` has the same incarnation while nothing of that happened.
/// - **M4** `write_card` writes all of the edit if the expected mark stands, else nothing; afterwards
///   `presence` shows it.
/// - **M5** `witness` notes the time of a life that it did not know, and whether it had known
///   another one; a life that it knows changes nothing. A later name of a life that it knows
///   replaces the name alone, an earlier one changes nothing ([`Sighting::noted`](crate::Sighting::noted)).
/// - **M6** `heal` puts an exclusive lease back where the key is free, raising the counter to its
///   fence, and changes nothing elsewhere.
/// - **M7** `acquire_in_turn` grants what is free if nobody older waits, and what is reserved for this
///   waiter or for a younger one. Else the waiter is in the queue afterwards, by its ticket, once and
///   in the mode in which it asked last; a free lock is reserved for the oldest. Barging takes what is free or reserved, and queues nowhere.
///   Readers join unless an older waiter wants no share. Those whom nobody like that keeps out any
///   more, since it left the queue or since a reader came in turn or ahead of it, also where the lock
///   was made shared before, are told that it is their turn.
/// - **M8** A lock that is freed by `depart` or `leave_queue` is reserved for the oldest waiter that
///   hears of it, for [`RESERVATION`]: it is told that it is its turn, and one behind it that belongs
///   to another client, that it is worth asking should the reservation lapse. Who does not hear is
///   dropped. Who asks is told nothing in the same step.
/// - **M9** A reservation that lapsed costs its client's other waiters their places, until one of them
///   asks again. One that keeps others out of what they could share is told to ask at once
///   ([`Word::Soon`](crate::Word::Soon) with nothing remaining), once in a [`RESERVATION`] at most: if
///   its client has not been heard when that is over, the same becomes of it. Whoever it keeps out
///   learns when that is, from its refusal or as one that stands in.
/// - **M10** While somebody waits, [`Store::acquire`] takes nothing that is reserved.
/// - **M11** While permits are held, the free ones are for as many waiters, the oldest of those who hear:
///   each is told that it is its turn, and of which permit, once in a [`RESERVATION`]; who has not
///   asked by then is late as in M9. One whose turn it is and whose permit is taken learns from
///   [`Busy::free`](crate::Busy::free) which others it may ask for; there is nothing in it for whoever has no
///   turn. Nobody overtakes a waiter of another mode that shows itself as in M9, and no reader one that
///   waits for a permit. Barging takes any free one; who does not wait, where nobody does.
/// - **M12** Another number of permits is refused without a place in the queue. A waiter of another
///   number, from the time before, stands in nobody's way.
pub trait Member: Store {
    /// The name under which the set knows this member; without credentials.
    fn id(&self) -> &MemberId;

    /// "If the claim still holds here, let the counter be at least `fence`." Where claims are held
    /// together: "and let nobody have had it first."
    ///
    /// # Errors
    ///
    /// Any failure to ask or to understand the answer; the counter may have been raised, which
    /// harms nobody.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the counter may or may not have been raised.
    fn seal<'a>(
        &'a self,
        claim: &'a Claim,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Sampled<Seal>, Error>>;

    /// [`Store::acquire`], in the order of tickets, or ahead of it.
    ///
    /// # Errors
    ///
    /// As [`Store::acquire`]; the waiter may be in the queue or not.
    ///
    /// # Cancel safety
    ///
    /// As [`Store::acquire`]; a [`leave_queue`](Self::leave_queue) afterwards leaves nothing queued.
    fn acquire_in_turn<'a>(
        &'a self,
        claim: &'a Claim,
        turn: &'a Turn,
    ) -> BoxFuture<'a, Result<Attempt, Error>>;

    /// [`Store::release`], and what becomes of the lock then. Also where the claim does not hold,
    /// the waiter of a [`Departure::Requeue`] is in the queue afterwards.
    ///
    /// # Errors
    ///
    /// As [`Store::release`].
    ///
    /// # Cancel safety
    ///
    /// As [`Store::release`].
    fn depart<'a>(
        &'a self,
        claim: &'a Claim,
        departure: &'a Departure,
    ) -> BoxFuture<'a, Result<Release, Error>>;

    /// Takes a waiter out of the queue; what is reserved for it is handed on.
    ///
    /// # Errors
    ///
    /// Any failure to ask or to understand the answer; it may be queued still.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    fn leave_queue<'a>(&'a self, key: &'a Key, waiter: Owner) -> BoxFuture<'a, Result<(), Error>>;

    /// From now on `ear` is told what concerns the waiters that ask here, beside those who listen
    /// already: each quorum that is built over the member does so once. [`Ears`](crate::Ears) keeps
    /// them.
    fn listen(&self, ear: Ear);

    /// [`Store::renew`], with a sample.
    ///
    /// # Errors
    ///
    /// If no answer came for any of the leases; each may or may not have been renewed.
    ///
    /// # Cancel safety
    ///
    /// As [`Store::renew`].
    fn renew_sampled<'a>(
        &'a self,
        leases: &'a [Held],
    ) -> BoxFuture<'a, Result<Sampled<Vec<Renewal>>, Error>>;

    /// Puts exclusive leases back where their keys are free, each for its whole TTL.
    ///
    /// # Errors
    ///
    /// Any failure to ask or to understand the answer; each lease may or may not have been put
    /// back.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. A `release` of the same claim afterwards leaves nothing held.
    fn heal<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Result<(), Error>>;

    /// How the member is, freshly asked, its card with it. Also the probe of one that had gone
    /// silent.
    ///
    /// # Errors
    ///
    /// Any failure to ask or to understand the answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    fn presence(&self) -> BoxFuture<'_, Result<Presence, Error>>;

    /// Writes on the member's card. `false` if the expected mark does not stand any more.
    ///
    /// # Errors
    ///
    /// Any failure; the card may or may not have been written.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the card may or may not have been written, never in part.
    fn write_card<'a>(&'a self, edit: &'a CardEdit) -> BoxFuture<'a, Result<bool, Error>>;

    /// Tells the member the lives of others, for it to remember when it first heard of them. A
    /// member without a card remembers nothing.
    ///
    /// # Errors
    ///
    /// Any failure; some or all may have been noted.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; some or all may have been noted.
    fn witness<'a>(&'a self, seen: &'a [(MemberId, Life)]) -> BoxFuture<'a, Result<(), Error>>;
}

/// How long a lock that was handed over is kept for the one whose turn it is.
pub const RESERVATION: Duration = Duration::from_secs(1);

/// What a member answers to [`Member::seal`].
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

/// An answer, and what the member showed of itself beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampled<T> {
    /// The answer.
    pub answer: T,
    /// What else the member showed.
    pub sample: Sample,
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
