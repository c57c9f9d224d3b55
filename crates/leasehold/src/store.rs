use std::fmt;

use crate::BoxFuture;
use crate::admin::Admin;
use crate::attempt::{Attempt, Release, Renewal};
use crate::claim::{Claim, Held};
use crate::error::Error;
use crate::guarantees::{Guarantees, LeaseTerms};
use crate::health::Health;
use crate::inspection::Inspection;
use crate::records::Records;

/// A place that grants locks: the trait for implementors. Users see [`Lock`](crate::Lock) and
/// [`Guard`](crate::Guard).
///
/// It serves three kinds of store: expiring leases (Redis, PostgreSQL), sessions (etcd,
/// ZooKeeper) and locks held by the kernel (files). Every method is called on the background
/// thread of a client, inside its runtime, and must not block it.
///
/// A store must implement `describe`, `guarantees`, `terms`, `acquire`, `renew`, `release` and `wait`. [`Inspection`], [`Admin`], [`Records`] and [`Health`] are optional traits, which the store
/// returns if it has them.
///
/// The numbered obligations are each a named test of the contract suite, which every store runs.
///
/// # Contract
///
/// - **S1** Two stores opened on the same place grant the same locks, also from two processes.
/// - **S2** `guarantees` and `terms` never change during a store's life.
/// - **S3** `describe` names the store without credentials.
/// - **S4** The optional traits that a store returns never change during its life. It returns [`Admin`]
///   exactly where `guarantees` offers breaking.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// The store in a few words, without credentials: for messages and logs.
    fn describe(&self) -> String;

    /// The places where the store keeps its locks, as [`describe`](Self::describe) names them: one for each
    /// member. A [`Handle`](crate::Handle) has them, so that a store without a common place refuses it.
    fn places(&self) -> Vec<String> {
        vec![self.describe()]
    }

    /// What the store promises.
    fn guarantees(&self) -> Guarantees;

    /// The times its leases keep to.
    fn terms(&self) -> LeaseTerms;

    /// Makes one attempt to take the lock. Never waits for a holder.
    ///
    /// All attempts of one wait have the same owner. After an attempt whose effect is unknown, the client
    /// releases its claim and goes on with another owner, so a late release frees no later attempt.
    ///
    /// # Contract
    ///
    /// - **A1** While an exclusive claim holds, no other claim on its key is granted; while a
    ///   shared claim holds, no exclusive one is. Different keys do not touch each other.
    /// - **A8** Claims on permits hold together where they are of the same number of permits, as many
    ///   as that number, each with a permit and a fence of its own. The store chooses the permit. Another mode is busy meanwhile, and another number is
    ///   [`ErrorKind::PermitsDiffer`](crate::ErrorKind::PermitsDiffer), whether or not a permit is
    ///   free. Where `guarantees` offers no permits such a claim is refused as unsupported.
    /// - **A2** Shared claims on one key hold together, each with a fence of its own, where
    ///   `guarantees` offers sharing; elsewhere a shared claim is refused as unsupported.
    /// - **A3** Asking again with the same owner while its claim holds is answered `Granted`.
    /// - **A4** A grant's fence is greater than every fence granted for the key before, in every
    ///   process and across restarts, and greater than the `proposal` of the claim that holds.
    /// - **A5** `Busy` is returned at once, and leaves nothing held.
    /// - **A6** Where leases expire, the lock is free again once the claim's TTL is over, if
    ///   nobody renewed it. Where they end with the process, it is free once the process is gone.
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

    /// Lets each lease live for its whole TTL again. Answers in the order of `leases`.
    ///
    /// # Contract
    ///
    /// - **R1** `Renewed` only where the lease still stood: renewing never takes a free lock, and
    ///   never a lock that somebody else holds.
    /// - **R2** Each lease is answered on its own: one that is lost, or broken in any way, does
    ///   not change the answers of the others.
    /// - **R3** A lease renewed in time outlives its first TTL.
    /// - **R4** A shared claim whose owner holds the lock exclusively makes it shared: it is `Renewed`,
    ///   and never in between could a writer enter. A release of the shared claim frees either.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; each lease may or may not have been renewed.
    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<Renewal>>;

    /// Frees the lock if this very claim holds it.
    ///
    /// # Contract
    ///
    /// - **F1** Afterwards the lock can be granted at once.
    /// - **F2** A claim that does not hold is `WasLost`, and whoever holds the lock keeps it: a
    ///   late or repeated release is harmless.
    /// - **F3** A release never overtakes the claim's own earlier attempt.
    ///
    /// # Errors
    ///
    /// `effect` is `Unknown` if the lock may or may not have been freed. The store goes on trying
    /// by itself where it can; at the latest the TTL frees the lock.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; a lease may then be freed or stand until its TTL.
    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Release, Error>>;

    /// Stops everything that the store does for the lease of `claim`, such as repairs, and leaves the lease to
    /// end by itself. The client calls it instead of [`release`](Self::release) when a lock stays held after its
    /// guard: for a [`Handle`](crate::Handle), or for a [lock delay](crate::Lock::lock_delay) after a loss. A
    /// store that only acts when it is asked ignores it.
    fn abandon(&self, claim: &Claim) {
        let _ = claim;
    }

    /// Resolves once everything that earlier calls left to be freed in the background has been
    /// tried. A client waits for it before it ends.
    ///
    /// # Contract
    ///
    /// - **F4** Afterwards nothing that was released is held anywhere that answers.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    fn settle(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Resolves when another attempt for `claim`, which was just answered `Busy`, is worth making.
    ///
    /// # Contract
    ///
    /// - **W1** May resolve without reason, but not in a busy loop.
    /// - **W2** Resolves within a bounded time after the lock became free.
    ///
    /// - **W3** Where `guarantees` says first come, first served: after a release, the lock is granted
    ///   to those in the queue in the order in which they began to wait, and to nobody else before.
    ///   Who ended meanwhile is passed over.
    /// - **W5** Where `guarantees` prefers writers, an exclusive claim that waits keeps out those that come
    ///   later to share the lock, or for a permit. Before it come at most those that waited already
    ///   while another writer held the lock, and those that go ahead of all who wait. Neither readers nor
    ///   writers that come without end keep the others waiting without end.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the claim's wait goes on until [`leave`](Self::leave).
    fn wait<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, ()>;

    /// Ends the wait that `claim` was an attempt of, granted or not. What takes messages goes on in
    /// the background; [`settle`](Self::settle) waits for it.
    ///
    /// # Contract
    ///
    /// - **W4** Soon the wait is in no queue, and nothing is reserved for it, where the store answers;
    ///   what was reserved is handed on.
    fn leave(&self, claim: &Claim) {
        let _ = claim;
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
