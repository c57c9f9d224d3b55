//! Redlock: an algorithm over members, not a kind of Redis client.
//!
//! The decisions are pure and stand in `ballot`, `tally` and `slots`; `election` and `link` carry them out,
//! `rounds` renews and frees, `records` keeps records, `views` and `inspection` show, `admin` breaks.

mod admin;
mod as_store;
mod ballot;
mod change;
mod election;
mod forming;
mod inspection;
mod latest_owners;
mod limit;
mod link;
mod readmission;
mod records;
mod reserving;
mod roster;
mod rounds;
mod settings;
mod slots;
mod tally;
mod traces;
mod trust;
mod under_way;
mod views;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use metrics::Histogram;

use crate::claim::Claim;
use crate::error::{Error, ErrorKind};
use crate::member::{Member, MemberId};
use crate::store::Store;
use change::Change;
use link::Link;
use roster::Roster;
use settings::Settings;
use waiting::{Errands, Waits};

pub use settings::TrustRules;

/// A store made of members of which a majority must agree: it goes on while a minority is dead,
/// frozen or cut off.
///
/// Members are asked at once, each with a limit of its own, and an attempt is decided as soon as a
/// majority is in or cannot be had any more. Who waits stands in every member's queue: first come,
/// first served.
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use std::sync::Arc;
/// use leasehold::ambient::Ambient;
/// use leasehold::{Client, Member, MemoryStore, Quorum};
///
/// let members = ["a", "b", "c"].map(|id| {
///     Arc::new(MemoryStore::member(id, Ambient::default())) as Arc<dyn Member>
/// });
/// let locks = Client::new(Quorum::new(members)?);
/// let guard = locks.lock("deploy").acquire().await?;
/// guard.release().await?;
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct Quorum {
    roster: Arc<Roster>,
    links: Vec<Arc<Link>>,
    waits: Arc<Waits>,
    errands: Arc<Errands>,
    /// How long it takes from a turn that is told to its grant.
    hand_over: Histogram,
    settings: Settings,
}

impl Quorum {
    /// The largest set of members.
    pub const MEMBERS_MAX: usize = 31;

    /// By how much the members' clocks may differ unless the set says otherwise.
    pub const CLOCK_TOLERANCE: Duration = Duration::from_millis(250);

    /// A quorum of `members`: 1 to [`Quorum::MEMBERS_MAX`], no two with the same id. An odd number
    /// from three on is what you want; the order does not matter.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`], naming the value and the rule.
    pub fn new(members: impl IntoIterator<Item = Arc<dyn Member>>) -> Result<Self, Error> {
        let members: Vec<_> = members.into_iter().collect();
        let refuse = |text: String| Err(Error::new(ErrorKind::InvalidInput, text));
        if members.is_empty() {
            return refuse("a quorum needs at least one server".into());
        }
        if members.len() > Self::MEMBERS_MAX {
            return refuse(format!(
                "a quorum of {} servers is too large; the maximum is {}",
                members.len(),
                Self::MEMBERS_MAX
            ));
        }
        for (index, member) in members.iter().enumerate() {
            if members[..index]
                .iter()
                .any(|other| other.id() == member.id())
            {
                return refuse(format!(
                    "member {} is given twice; list each server once",
                    member.id()
                ));
            }
        }
        Ok(Self::over(members))
    }

    /// The quorum of a single member: that member with limits on its requests, and with attempts
    /// that were not answered followed up.
    pub fn of_one(member: Arc<dyn Member>) -> Self {
        Self::over(vec![member])
    }

    fn over(members: Vec<Arc<dyn Member>>) -> Self {
        Settings::of(members).build()
    }

    /// Forms the set: writes the first card on every member, so that all count at once. Without
    /// it, the first client does so once all members have answered, and they count after the
    /// longest TTL and a second, since they may be a set that forgot everything.
    ///
    /// # Errors
    ///
    /// Nothing is written unless every member answers, has no card yet, holds no lock, and can be
    /// a member.
    ///
    /// # Cancel safety
    ///
    /// Dropped midway, some members may have their card; clients complete the set.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub async fn init(&self) -> Result<(), Error> {
        forming::init(
            &self.settings.members,
            self.roster.set(),
            &self.settings.ambient,
        )
        .await
    }

    /// Makes this set the successor of `old`, from which it differs by one member: writes it on the
    /// cards. Clients of the old set are refused from then on, and what they hold is lost at its
    /// deadline: give them the new list at once. The next change must wait for the longest TTL and
    /// a second.
    ///
    /// # Errors
    ///
    /// Nothing is written unless all members of this set answer, have cards of `old` (the one that
    /// joins: no card, and no locks), and the last change is old enough. Interrupted while it
    /// writes, it can be repeated.
    ///
    /// # Cancel safety
    ///
    /// Dropped midway, some members may have the new set on their cards, and no client of either
    /// set may find a majority: repeat it.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub async fn succeed(&self, old: &Self) -> Result<(), Error> {
        let change = Change {
            old: old.roster.set(),
            new: self.roster.set(),
        };
        let ours = |member: &&Arc<dyn Member>| self.member_ids().any(|id| id == member.id());
        let leaving = old.settings.members.iter().find(|member| !ours(member));
        change::carry_out(
            change,
            &self.settings.members,
            leaving,
            &self.settings.ambient,
        )
        .await
    }

    /// Gives a member that lost its data a new record of this quorum, on the word of an operator.
    /// Returns whether a record was written: `false` if the member has one already.
    ///
    /// Clients do the same by themselves once a majority of the members has the record, or once all
    /// members answer and none contradicts. This method needs a single member that answers and has
    /// the record. Use it where the other members cannot come back. The new record begins with an
    /// age of zero, so the member has no vote for the longest TTL and a second.
    ///
    /// The members that answer may be wrong: a record may have come back from an old copy, and the
    /// silent members may belong to another quorum by now. Then two clients can hold the same lock.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if no member has this id, if a member that answers belongs to
    /// another quorum or cannot be a member, or if none that answers has a record of this quorum.
    /// [`ErrorKind::Unreachable`] if the member itself does not answer. Except after an answer that
    /// was lost ([`Error::effect`]), nothing is written.
    ///
    /// # Cancel safety
    ///
    /// Dropped midway, the member may have its record or not: call it again.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub async fn readmit(&self, member: &MemberId) -> Result<bool, Error> {
        let Settings {
            members, ambient, ..
        } = &self.settings;
        readmission::readmit(members, self.roster.set(), member, ambient).await
    }

    /// The members' ids, in the order they were given.
    pub fn member_ids(&self) -> impl Iterator<Item = &MemberId> {
        self.links.iter().map(|link| link.member().id())
    }

    /// How long one member may take to answer, of the term in which a lease can be believed.
    fn member_limit(&self, term: Duration) -> Duration {
        if self.links.len() == 1 {
            (term / 3).min(Claim::LIMIT_MAX)
        } else {
            (term / 20).clamp(Duration::from_millis(50), Duration::from_secs(1))
        }
    }

    fn first(&self) -> &dyn Member {
        // `new` refuses a quorum without members.
        &**self.links[0].member()
    }
}

impl From<Quorum> for Arc<dyn Store> {
    fn from(quorum: Quorum) -> Self {
        let members = quorum.links.len();
        if members > 1 && members.is_multiple_of(2) {
            tracing::warn!(
                members,
                "an even number of servers tolerates no more failures than one server less; use an odd number"
            );
        }
        Arc::new(quorum)
    }
}
