//! Initializing a quorum, and changing its members.

use futures_util::future::{join, join_all};
use leasehold::member::{MemberId, MemberRecord, MemberRecordEdit, MemberSet};
use leasehold::store::exact_span;
use leasehold::{Error, ErrorKind};
use leasehold_quorum::setup::{self, Change, MemberAnswer, Past, RecordStep};

use super::{Limits, RedisStore};
use crate::RedisMember;

/// How often an initialization looks at the members. Three looks suffice if no other client writes records.
const MOST_LOOKS: usize = 8;

impl RedisStore {
    /// Initializes the quorum: writes the first member records, so that all members have a vote and keep
    /// results of requests at once. Returns `false` if there is nothing to do.
    ///
    /// Without this call, the first client initializes the quorum when all members have answered. The
    /// members then have a vote only after the longest TTL and a second, and keep results only after their
    /// retention, because servers that lost their data look the same. While no lock was granted, this call
    /// still ends both waits. Later, [`init_new`](Self::init_new) does. Clients that run already notice it
    /// within a minute. If a client initializes the quorum at the same moment, some members may still have to wait.
    ///
    /// # Errors
    ///
    /// If a member does not answer, belongs to another quorum, holds a lock, or cannot be a member, and if
    /// a lock may have been granted since a client initialized the quorum. In these cases nothing is
    /// written. [`ErrorKind::Untrusted`] if other clients write records at the same time, again and again: call it again.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, some members may have their record. Clients complete the quorum, and so does the next call.
    pub async fn init(&self) -> Result<bool, Error> {
        self.initialize(Past::Unknown).await
    }

    /// Like [`init`](Self::init), and states in the operator's name that the members were new when the first
    /// client initialized the quorum: none had lost locks or results of requests. If that is wrong, a request
    /// may run twice.
    ///
    /// # Errors
    ///
    /// As [`init`](Self::init), except that locks may have been granted since.
    ///
    /// # Cancel safety
    ///
    /// As [`init`](Self::init).
    pub async fn init_new(&self) -> Result<bool, Error> {
        self.initialize(Past::New).await
    }

    async fn initialize(&self, past: Past) -> Result<bool, Error> {
        let mut is_changed = false;
        for _ in 0..MOST_LOOKS {
            let mut answers = self.ask_all().await;
            let set = self.set_of(&answers);
            self.check_limits(&set)?;
            if setup::is_initialized(&set, &answers) {
                let counters = self.members.iter().map(|it| it.server.has_counters());
                for (answer, was_used) in answers.iter_mut().zip(join_all(counters).await) {
                    answer.was_used = was_used;
                }
            }
            let steps = setup::initialization(&set, &answers, past, &*self.env.entropy)?;
            if steps.is_empty() && setup::is_initialized(&set, &answers) {
                return Ok(is_changed);
            }
            is_changed |= self.take(steps).await?;
        }
        let text = "other clients initialize the quorum at the same time; try again";
        Err(Error::new(ErrorKind::Untrusted, text))
    }

    /// Takes all steps at once, and returns whether one of them wrote a record.
    async fn take(&self, steps: Vec<RecordStep>) -> Result<bool, Error> {
        let taken = steps.into_iter().map(|step| async move {
            match step {
                RecordStep::Write(member, edit) => {
                    let member = &self.members[usize::from(member)];
                    member.write_member_record(&edit).await
                }
                RecordStep::Observe(member, seen) => {
                    let member = &self.members[usize::from(member)];
                    member.observe(&seen).await.map(|()| false)
                }
                RecordStep::Refresh(_) => Ok(false),
            }
        });
        let taken: Result<Vec<bool>, Error> = join_all(taken).await.into_iter().collect();
        Ok(taken?.contains(&true))
    }

    /// Returns the quorum with the limits that most of these records of its members state. Without a record, these are
    /// the limits of a quorum that this store initializes.
    pub fn stated_set<'a>(&self, records: impl IntoIterator<Item = &'a MemberRecord>) -> MemberSet {
        setup::stated_set(&self.set, records)
    }

    fn set_of(&self, answers: &[MemberAnswer]) -> MemberSet {
        self.stated_set(answers.iter().filter_map(MemberAnswer::member_record))
    }

    /// Fails if the quorum is initialized with other limits than the caller stated.
    fn check_limits(&self, set: &MemberSet) -> Result<(), Error> {
        let Limits {
            max_ttl,
            clock_tolerance,
        } = self.limits;
        let stated = [
            ("max_ttl", max_ttl, set.max_ttl),
            ("clock_tolerance", clock_tolerance, set.clock_tolerance),
        ];
        for (name, stated, found) in stated {
            if let Some(stated) = stated.filter(|stated| *stated != found) {
                return refuse(format!(
                    "the quorum was initialized with {name} {}, which cannot become {}; leave it out, or change it as \
                     docs/runbooks/change-the-limits.md says",
                    exact_span(found),
                    exact_span(stated)
                ));
            }
        }
        Ok(())
    }

    /// Makes this quorum the successor of `old`; the two differ by one member. Returns the new quorum, which has the
    /// limits of the old one. From then on, members refuse
    /// clients of the old quorum, which lose their locks at the deadlines. Change the configuration of all
    /// clients at once. Wait for the longest TTL and a second before the next change.
    ///
    /// # Errors
    ///
    /// If a member does not answer, has no record of `old` (a new member: has a record or locks), or
    /// changed too recently. In these cases nothing is written. After an interruption, call this again.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, some members may have the new configuration, and clients of neither
    /// quorum may find a majority. Call this again.
    pub async fn succeed(&self, old: &Self) -> Result<MemberSet, Error> {
        let answers = self.ask_all().await;
        let change = Change::new(&old.set, &self.set, &answers)?;
        let edits = change.edits(&answers, &*self.env.entropy)?;
        for (member, edit) in self.members.iter().zip(edits) {
            let Some(edit) = edit else { continue };
            if !member.write_member_record(&edit).await? {
                let id = member.id();
                return refuse(format!(
                    "{id}: its quorum record changed meanwhile; try again"
                ));
            }
        }
        let leaves = |member: &&RedisMember| !self.set.ids.contains(member.id());
        let new = change.new_set().clone();
        if let Some(member) = old.members.iter().find(leaves)
            && let Err(error) = dismiss(change, member).await
        {
            // A majority has the new record, so the old one on this member has no effect.
            tracing::warn!(member = %member.id(), %error, "removed, but could not be told");
        }
        Ok(new)
    }

    /// Checks what [`succeed`](Self::succeed) checks, returns what it returns, and writes nothing.
    ///
    /// # Errors
    ///
    /// As for [`succeed`](Self::succeed).
    pub async fn check_succession(&self, old: &Self) -> Result<MemberSet, Error> {
        let answers = self.ask_all().await;
        let change = Change::new(&old.set, &self.set, &answers)?;
        change.edits(&answers, &*self.env.entropy)?;
        Ok(change.new_set().clone())
    }

    /// Gives a member that lost its data a new record of this quorum, at the request of an operator.
    /// Returns `true` if it wrote a record, and `false` if the member already has one.
    ///
    /// Clients do the same by themselves if a majority of the members has the record, or if all members
    /// answer without a contradiction. This method needs only one member that answers and has the record.
    /// Use it if the other members cannot come back. The member has no vote for the longest TTL and a
    /// second.
    ///
    /// The members that answer may be wrong: a record may come from an old copy, and the silent members may
    /// belong to another quorum by now. Then two clients can hold the same lock.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if no member has this id, if a member that answers belongs to another
    /// quorum or cannot be a member, or if none has a record of this quorum. [`ErrorKind::Unreachable`] if
    /// the member itself does not answer. Nothing is written, except if an answer was lost
    /// ([`Error::effect`]).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the member may or may not have its record. Call this again.
    pub async fn readmit(&self, member: &MemberId) -> Result<bool, Error> {
        setup::check_member(&self.set, member)?;
        let answers = self.ask_all().await;
        let set = self.set_of(&answers);
        let edit = setup::readmission(&set, member, &answers, &*self.env.entropy)?;
        let Some(edit) = edit else {
            return Ok(false);
        };
        self.write_first(member, &edit).await?;
        self.admit(member).await?;
        Ok(true)
    }

    /// Writes the first record of a server.
    async fn write_first(&self, member: &MemberId, edit: &MemberRecordEdit) -> Result<(), Error> {
        let place = self.members.iter().find(|it| it.id() == member);
        let written = match place {
            Some(place) => place.write_member_record(edit).await?,
            None => false,
        };
        match written {
            true => Ok(()),
            false => refuse(format!("{member} was given a record meanwhile: try again")),
        }
    }

    /// Makes a server known to the other members, and confirms its record then. From that moment, no earlier server of
    /// its id counts.
    async fn admit(&self, member: &MemberId) -> Result<(), Error> {
        let Some(drawn) = setup::unconfirmed(member, &self.ask_all().await) else {
            return Ok(());
        };
        let seen = [(member.clone(), drawn)];
        let others = self.members.iter().filter(|it| it.id() != member);
        join_all(others.map(|other| other.observe(&seen))).await;
        let answers = self.ask_all().await;
        let set = self.set_of(&answers);
        let edit = setup::confirmation(&set, member, &answers, &*self.env.entropy);
        let place = self.members.iter().find(|it| it.id() == member);
        if let (Some(edit), Some(place)) = (edit, place)
            && place.write_member_record(&edit).await?
        {
            return Ok(());
        }
        // A client may have been faster.
        match setup::unconfirmed(member, &self.ask_all().await) {
            None => Ok(()),
            Some(_) => {
                let text =
                    format!("{member} has no vote yet, because too few servers answer; try again");
                Err(Error::new(ErrorKind::Unreachable, text))
            }
        }
    }

    /// Moves a member to another server, under the same id. This store has the new address, and `former` is the
    /// server at the old one. No lock is lost, and clients with the old address go on. The former server gets
    /// the record of a replaced server and loses its vote. The new one has a vote after the longest TTL and a
    /// second. With `is_gone`, the operator states that a server that does not answer is stopped for good.
    ///
    /// # Errors
    ///
    /// If the other members with a record of this quorum are no majority, if the new server does not answer,
    /// holds a lock, is the former one, or cannot be a member, and if the former one does not answer and is not gone, or was
    /// replaced by another server before. In these cases nothing is written.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the former server may have lost its vote. Then call [`readmit`](Self::readmit).
    pub async fn replace(&self, former: &RedisMember, is_gone: bool) -> Result<(), Error> {
        let id = former.id();
        let (answers, status) = join(self.ask_all(), former.status()).await;
        let set = self.set_of(&answers);
        let edit =
            setup::replacement(&set, id, status.as_ref().ok(), &answers, &*self.env.entropy)?;
        let new = answers.iter().find(|answer| answer.id == *id);
        if let (Ok(status), Some(Ok(new))) = (&status, new.map(|new| &new.status))
            && new.run == status.run
        {
            return refuse(format!("{id}: the new address leads to the former server"));
        }
        if let Err(error) = &status
            && !is_gone
        {
            let text = format!(
                "the former server does not answer, so it cannot be told that it was replaced: {error}"
            );
            return Err(Error::new(error.kind(), text));
        }
        if let Some(edit) = edit {
            self.write_first(id, &edit).await?;
        }
        if let Ok(status) = status
            && let Some(edit) = setup::retirement(&set, id, status)
            && !former.write_member_record(&edit).await?
        {
            return refuse(format!(
                "{id}: its quorum record changed meanwhile; try again"
            ));
        }
        self.admit(id).await
    }

    /// Asks all members at once.
    async fn ask_all(&self) -> Vec<MemberAnswer> {
        let clock = &self.env.clock;
        let asked = self.members.iter().map(|member| async move {
            let sent = clock.now();
            let status = member.status().await;
            let received = clock.now();
            let held = match &status {
                Ok(status) if status.member_record.is_none() => member.server.any_lock().await,
                _ => Ok(None),
            };
            MemberAnswer {
                id: member.id().clone(),
                status,
                held,
                was_used: Ok(false),
                sent,
                received,
            }
        });
        join_all(asked).await
    }
}

/// Tells the removed member which quorum it left.
async fn dismiss(change: Change, member: &RedisMember) -> Result<(), Error> {
    if let Some(edit) = change.dismissal(member.status().await?) {
        member.write_member_record(&edit).await?;
    }
    Ok(())
}

fn refuse<T>(text: String) -> Result<T, Error> {
    Err(Error::new(ErrorKind::InvalidInput, text))
}
