//! For implementors: the [`Store`] trait and what it exchanges with a client.
//!
//! Applications need little of this: [`Owner`], the guarantees, and what [`Client`](crate::Client) returns
//! to operators.

mod admin;
mod attempt;
mod claim;
mod force_release;
mod guarantees;
mod health;
mod inspection;
mod lock_listing;
mod member;
mod member_record;
pub(crate) mod optional;
mod record_state;
mod records;

pub use crate::env::BoxFuture;
pub use crate::runtime::background;
pub use crate::types::{
    ClientId, ClientInfo, LostReason, MemberFailure, MemberId, NotAnOwner, Owner, Pattern,
    PermitSlot, PermitSlots, Permits, Ticket, Wait, Waiter, is_printable, printable,
};
pub use admin::Admin;
pub use attempt::{Attempt, Busy, Grant, Release, Renewal, Term};
pub use claim::{Claim, Held};
pub use force_release::{ForceRelease, ForceReleaseOutcome, ForceReleaseRecord, ForcedRelease};
pub use guarantees::{Exclusion, Expiry, Guarantees, LeaseTerms, Order};
pub use health::{Health, MemberHealth, requests_run_in};
pub use inspection::Inspection;
pub use lock_listing::{ListedLock, LockListing, Visibility};
pub use member::{FenceConfirmation, Incarnation, MemberStatus, Sample};
pub use member_record::{
    DataGeneration, Epoch, MemberRecord, MemberRecordEdit, MemberSet, Observation, RunId,
};
pub use record_state::{KeptValue, RecordState};
pub use records::{
    Opened, RECORD_MEMORY, Reading, RecordKey, RecordWrite, Records, Version, WriteOutcome, Written,
};

use std::fmt;

use crate::types::Error;

/// A place that grants locks: the trait for implementors. Users see [`Lock`](crate::Lock) and
/// [`Guard`](crate::Guard).
///
/// It fits three kinds of store: expiring leases (Redis, PostgreSQL), sessions (etcd, ZooKeeper) and
/// locks held by the kernel (files). The client calls every method inside the runtime of its background
/// thread, possibly on the thread of a caller. No method may block that thread.
///
/// A store must implement [`fmt::Display`], which names it for messages and logs, `guarantees`, `terms`, `acquire`, `renew`, `release` and `wait`.
/// [`Inspection`], [`Admin`], [`Records`] and [`Health`] are optional traits, which the store returns if
/// it has them.
///
/// Each numbered obligation is a named test of the contract suite, which every store runs.
///
/// # Contract
///
/// - **S1** Two stores opened on the same place grant the same locks, also from two processes.
/// - **S2** `guarantees` and `terms` never change during a store's life.
/// - **S3** `Display` names the store in a few words. Neither it nor `Debug` shows credentials.
/// - **S4** The optional traits that a store returns never change during its life. Locks can be broken
///   exactly if it returns [`Admin`].
pub trait Store: fmt::Display + fmt::Debug + Send + Sync + 'static {
    /// Returns the places where the store keeps its locks, one per member, as
    /// `Display` names them. A [`Handle`](crate::Handle) contains them, so that a
    /// store without a common place refuses it.
    fn places(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    /// Returns what the store promises.
    fn guarantees(&self) -> Guarantees;

    /// Returns the limits of its leases.
    fn terms(&self) -> LeaseTerms;

    /// Makes one attempt to take the lock. Never waits for a holder.
    ///
    /// All attempts of one wait in the queue have the same owner. An owner that may have been released never
    /// asks again, because a late release would free its later lease. So the client continues with another
    /// owner after an attempt whose effect is unknown, and after each attempt outside of the queue. A store that
    /// releases an owner within a wait continues with another one, and
    /// [names it in the grant](super::store::Grant::owner).
    ///
    /// # Contract
    ///
    /// - **A1** While an exclusive claim holds, the store grants no other claim on its key. While a
    ///   shared claim holds, it grants no exclusive one. Different keys do not affect each other.
    /// - **A8** Claims on permits hold together if they name the same number of permits: at most that
    ///   many claims, each with its own permit and fence. The store chooses the permit. Meanwhile, a
    ///   claim in another mode is busy, and a claim with another number of permits fails with
    ///   [`ErrorKind::PermitsDiffer`](crate::ErrorKind::PermitsDiffer), whether or not a permit is free.
    ///   If `guarantees` offers no permits, the store refuses such a claim as unsupported.
    /// - **A2** Shared claims on one key hold together, each with its own fence, if `guarantees` offers
    ///   shared mode. Otherwise the store refuses a shared claim as unsupported.
    /// - **A3** The store answers `Granted` to another attempt by the same owner while its claim holds.
    /// - **A4** A grant's fence is greater than every fence granted for the key before, in every
    ///   process and across restarts, and greater than the `proposal` of the claim that holds.
    /// - **A5** The store returns `Busy` at once, and leaves nothing held.
    /// - **A6** If leases expire, the lock is free again once the claim's TTL is over without a renewal.
    ///   If they end with the process, the lock is free once the process is gone.
    ///
    /// # Errors
    ///
    /// `effect` is `Unknown` if the claim may hold; the caller then releases it.
    ///
    /// # Cancel safety
    ///
    /// - **A7** May be dropped at any await point; a `release` of the same claim afterwards leaves
    ///   nothing held, however far the attempt had got.
    fn acquire<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Attempt, Error>>;

    /// Renews each lease for its whole TTL. Answers in the order of `leases`.
    ///
    /// # Contract
    ///
    /// - **R1** `Renewed` means that the lease still existed: a renewal never takes a free lock, nor a
    ///   lock that another owner holds.
    /// - **R2** Each lease has its own answer. A lease that is lost, or broken in any way, does not
    ///   change the answers of the others.
    /// - **R3** A lease renewed in time outlives its first TTL.
    /// - **R4** A shared claim whose owner holds the lock exclusively makes it shared. The answer is
    ///   `Renewed`, and no writer can enter in between. A release of the shared claim frees the lock in
    ///   either mode.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; each lease may or may not have been renewed.
    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<Renewal>>;

    /// Frees the lock if exactly this claim holds it.
    ///
    /// # Contract
    ///
    /// - **F1** Afterwards, the store can grant the lock at once.
    /// - **F2** A claim that does not hold is `WasLost`, and the current holder keeps the lock: a late or
    ///   repeated release is harmless.
    /// - **F3** A release never overtakes the claim's own earlier attempt.
    ///
    /// # Errors
    ///
    /// `effect` is `Unknown` if the lock may or may not have been freed. The store keeps trying by itself
    /// if it can; the TTL frees the lock at the latest.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the lease is then freed or lasts until its TTL.
    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Release, Error>>;

    /// Stops everything that the store does for the lease of `claim`, such as repairs, and leaves the
    /// lease to end by itself. The client calls it instead of [`release`](Self::release) when a lock
    /// stays held after its guard: for a [`Handle`](crate::Handle), or for a [lock
    /// delay](crate::Lock::lock_delay) after a loss. A store that only acts when it is asked ignores it.
    fn detach(&self, claim: &Claim) {
        let _ = claim;
    }

    /// Resolves once the store has tried to free everything that earlier calls left to the background. A
    /// client waits for it before it ends.
    ///
    /// # Contract
    ///
    /// - **F4** Afterwards, no place that answers still holds what was released.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Resolves when another attempt for `claim`, which was just answered `Busy`, is worthwhile.
    ///
    /// # Contract
    ///
    /// - **W1** May resolve without reason, but not in a busy loop.
    /// - **W2** Resolves within a bounded time after the lock became free.
    ///
    /// - **W3** If `guarantees` says first come, first served: after a release, the store grants the lock
    ///   to the claims in the queue in the order in which they began to wait, and to no other claim
    ///   before them. It skips waiters that have ended.
    /// - **W5** If `guarantees` offers shared mode, a waiting exclusive claim keeps out later claims that
    ///   share the lock or want a permit. Only two kinds of claim may come before it: those that already
    ///   waited while another writer held the lock, and those that go ahead of the queue. An endless
    ///   stream of readers or writers does not keep the others waiting without end.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the claim's wait goes on until [`leave`](Self::leave).
    fn wait<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, ()>;

    /// Ends the wait that `claim` belongs to, granted or not. Work that takes messages continues in the
    /// background; [`flush`](Self::flush) waits for it.
    ///
    /// # Contract
    ///
    /// - **W4** If the store answers, the wait is soon in no queue, and nothing is reserved for it. The
    ///   store passes on what was reserved.
    fn leave(&self, claim: &Claim) {
        let _ = claim;
    }

    /// Frees what the store keeps for a client. The client has ended, and no other call names it.
    fn end_client(&self, client: ClientId) {
        let _ = client;
    }

    /// Returns how to see holders, waiters and held locks; `None` if the store cannot show them.
    fn inspection(&self) -> Option<&dyn Inspection> {
        None
    }

    /// Returns how an operator breaks a lock; `None` if a lock cannot be taken from its holder.
    fn admin(&self) -> Option<&dyn Admin> {
        None
    }

    /// Returns the values that the store keeps next to locks; `None` if it keeps none.
    fn records(&self) -> Option<&dyn Records> {
        None
    }

    /// Returns how to see the members of the store; `None` if it has no members.
    fn health(&self) -> Option<&dyn Health> {
        None
    }
}
