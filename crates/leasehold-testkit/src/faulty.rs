mod optional;
mod records;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::ambient::Ambient;
use leasehold::background;
use leasehold::{
    Admin, Attempt, BoxFuture, CardEdit, Claim, Departure, Ear, Error, ErrorKind, Fence,
    Guarantees, Held, Inspection, Key, LeaseTerms, Life, Member, MemberId, Owner, Presence,
    Records, Release, Renewal, Sampled, Seal, Store, Turn,
};
use tokio::sync::watch;

use crate::fuse::{Fate, Fuse};
use crate::virtual_time::lock;

/// What is wrong with a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// It answers nothing; once thawed it carries out all that it was sent, also requests that
    /// nobody waits for any more, as a stopped server does with what its kernel received.
    Frozen,
    /// It cannot be reached.
    Unreachable,
    /// It answers so much later.
    Slow(Duration),
    /// What it is sent reaches it so much later.
    Late(Duration),
    /// Requests and answers take random times, at most so long each: what is sent to several members
    /// reaches each of them in another order.
    Jittery(Duration),
    /// It breaks off whatever asks it.
    Panics,
}

/// A member between a quorum and a real one, which can be made to fail.
#[derive(Clone, Debug)]
pub struct FaultyMember {
    inner: Arc<dyn Member>,
    ambient: Ambient,
    fault: watch::Sender<Fault>,
    calls: Arc<Mutex<Vec<Call>>>,
    fuse: Option<Fuse>,
}

/// A request as it reached the member.
#[derive(Clone, Debug)]
pub enum Call {
    /// `acquire`.
    Acquire(Claim),
    /// `renew`, one per lease.
    Renew(Claim),
    /// `acquire_in_turn`.
    AcquireInTurn(Claim, Turn),
    /// `leave_queue`.
    LeaveQueue(Owner),
    /// `release` or `depart`.
    Release(Claim),
    /// `seal`.
    Seal(Claim, Fence),
    /// `heal`, one per lease.
    Heal(Claim),
}

impl FaultyMember {
    /// `inner`, without a fault yet.
    pub fn new(inner: impl Member, ambient: Ambient) -> Self {
        Self {
            inner: Arc::new(inner),
            ambient,
            fault: watch::Sender::new(Fault::None),
            calls: Arc::default(),
            fuse: None,
        }
    }

    /// The same for a client that dies when `fuse` blows.
    pub fn with_fuse(mut self, fuse: Fuse) -> Self {
        self.fuse = Some(fuse);
        self
    }

    /// Makes the member fail in this way from now on, or heals it.
    pub fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    /// All requests that reached the member, carried out or not, in their order.
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.calls).clone()
    }

    fn note(&self, call: Call) {
        lock(&self.calls).push(call);
    }

    fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(Arc<dyn Member>) -> BoxFuture<'static, Result<T, Error>> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let asking = self.through(request);
        Box::pin(async move { asking.await? })
    }

    fn through<T: Send + 'static>(
        &self,
        request: impl FnOnce(Arc<dyn Member>) -> BoxFuture<'static, T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let (inner, mut fault) = (Arc::clone(&self.inner), self.fault.subscribe());
        let (ambient, current) = (self.ambient.clone(), *fault.borrow());
        let (id, fuse) = (inner.id().to_string(), self.fuse.clone());
        Box::pin(async move {
            match fuse.map_or(Fate::Answered, |fuse| fuse.next()) {
                Fate::Answered => {}
                Fate::CarriedOut => {
                    request(inner).await;
                    return std::future::pending().await;
                }
                Fate::Unsent => return std::future::pending().await,
            }
            match current {
                Fault::None => Ok(request(inner).await),
                Fault::Frozen => {
                    // A task of its own: it goes on when its caller is gone.
                    let answer = background::spawn(async move {
                        let thawed = fault
                            .wait_for(|fault| *fault != Fault::Frozen)
                            .await
                            .is_ok();
                        if !thawed {
                            std::future::pending::<()>().await;
                        }
                        request(inner).await
                    });
                    answer.await.map_err(|_| unreachable_member(&id))
                }
                Fault::Unreachable => Err(unreachable_member(&id)),
                Fault::Slow(span) => {
                    let answer = request(inner).await;
                    ambient.clock.sleep_until(ambient.clock.now() + span).await;
                    Ok(answer)
                }
                Fault::Jittery(most) => {
                    let travels = || {
                        let span = ambient.random_span(Duration::ZERO, most);
                        ambient.clock.sleep_until(ambient.clock.now() + span)
                    };
                    travels().await;
                    let answer = request(inner).await;
                    travels().await;
                    Ok(answer)
                }
                Fault::Late(span) => {
                    ambient.clock.sleep_until(ambient.clock.now() + span).await;
                    Ok(request(inner).await)
                }
                Fault::Panics => panic!("{id} was told to panic"),
            }
        })
    }
}

fn unreachable_member(id: &str) -> Error {
    Error::new(ErrorKind::Unreachable, "connection refused").with_store(id)
}

impl Store for FaultyMember {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn guarantees(&self) -> Guarantees {
        self.inner.guarantees()
    }

    fn terms(&self) -> LeaseTerms {
        self.inner.terms()
    }

    fn acquire<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Attempt, Error>> {
        self.note(Call::Acquire(claim.clone()));
        let claim = claim.clone();
        let asking =
            self.through(move |inner| Box::pin(async move { inner.acquire(&claim).await }));
        Box::pin(async move { asking.await? })
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<Renewal>> {
        for held in leases {
            self.note(Call::Renew((*held.claim).clone()));
        }
        let leases = leases.to_vec();
        let count = leases.len();
        let asking = self.through(move |inner| Box::pin(async move { inner.renew(&leases).await }));
        Box::pin(async move {
            match asking.await {
                Ok(answers) => answers,
                Err(error) => vec![Renewal::Unknown(error); count],
            }
        })
    }

    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Release, Error>> {
        self.note(Call::Release(claim.clone()));
        let claim = claim.clone();
        let asking =
            self.through(move |inner| Box::pin(async move { inner.release(&claim).await }));
        Box::pin(async move { asking.await? })
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        self.inner.settle()
    }

    fn wait<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, ()> {
        self.inner.wait(claim)
    }

    fn inspection(&self) -> Option<&dyn Inspection> {
        self.inner.inspection().is_some().then_some(self)
    }

    fn admin(&self) -> Option<&dyn Admin> {
        self.inner.admin().is_some().then_some(self)
    }

    fn records(&self) -> Option<&dyn Records> {
        self.inner.records().is_some().then_some(self)
    }
}

impl Member for FaultyMember {
    fn id(&self) -> &MemberId {
        self.inner.id()
    }

    fn acquire_in_turn<'a>(
        &'a self,
        claim: &'a Claim,
        turn: &'a Turn,
    ) -> BoxFuture<'a, Result<Attempt, Error>> {
        self.note(Call::AcquireInTurn(claim.clone(), *turn));
        let (claim, turn) = (claim.clone(), *turn);
        self.ask(move |inner| Box::pin(async move { inner.acquire_in_turn(&claim, &turn).await }))
    }

    fn depart<'a>(
        &'a self,
        claim: &'a Claim,
        departure: &'a Departure,
    ) -> BoxFuture<'a, Result<Release, Error>> {
        self.note(Call::Release(claim.clone()));
        let (claim, departure) = (claim.clone(), *departure);
        self.ask(move |inner| Box::pin(async move { inner.depart(&claim, &departure).await }))
    }

    fn leave_queue<'a>(&'a self, key: &'a Key, waiter: Owner) -> BoxFuture<'a, Result<(), Error>> {
        self.note(Call::LeaveQueue(waiter));
        let key = key.clone();
        self.ask(move |inner| Box::pin(async move { inner.leave_queue(&key, waiter).await }))
    }

    fn listen(&self, ear: Ear) {
        self.inner.listen(ear);
    }

    fn seal<'a>(
        &'a self,
        claim: &'a Claim,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Sampled<Seal>, Error>> {
        self.note(Call::Seal(claim.clone(), fence));
        let claim = claim.clone();
        self.ask(move |inner| Box::pin(async move { inner.seal(&claim, fence).await }))
    }

    fn renew_sampled<'a>(
        &'a self,
        leases: &'a [Held],
    ) -> BoxFuture<'a, Result<Sampled<Vec<Renewal>>, Error>> {
        for held in leases {
            self.note(Call::Renew((*held.claim).clone()));
        }
        let leases = leases.to_vec();
        self.ask(move |inner| Box::pin(async move { inner.renew_sampled(&leases).await }))
    }

    fn heal<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Result<(), Error>> {
        for held in leases {
            self.note(Call::Heal((*held.claim).clone()));
        }
        let leases = leases.to_vec();
        self.ask(move |inner| Box::pin(async move { inner.heal(&leases).await }))
    }

    fn presence(&self) -> BoxFuture<'_, Result<Presence, Error>> {
        self.ask(|inner| Box::pin(async move { inner.presence().await }))
    }

    fn write_card<'a>(&'a self, edit: &'a CardEdit) -> BoxFuture<'a, Result<bool, Error>> {
        let edit = edit.clone();
        self.ask(move |inner| Box::pin(async move { inner.write_card(&edit).await }))
    }

    fn witness<'a>(&'a self, seen: &'a [(MemberId, Life)]) -> BoxFuture<'a, Result<(), Error>> {
        let seen = seen.to_vec();
        self.ask(move |inner| Box::pin(async move { inner.witness(&seen).await }))
    }
}

impl From<FaultyMember> for Arc<dyn Store> {
    fn from(member: FaultyMember) -> Self {
        Arc::new(member)
    }
}
