use std::sync::Arc;

use leasehold::{
    Admin, Attempt, BoxFuture, BreakRecord, Broken, CardEdit, Claim, Departure, Ear, Error,
    ErrorKind, Fence, Guarantees, Held, Holder, Inspection, Key, LeaseTerms, Life, Member,
    MemberId, Owner, Pattern, Presence, Release, Renewal, Sampled, Seal, Store, Survey, Turn,
    Waiter,
};

use super::request::{Answer, Request};
use super::wire::Wire;

/// A server as one client reaches it.
#[derive(Clone, Debug)]
pub(crate) struct RemoteMember {
    id: MemberId,
    wire: Arc<Wire>,
}

impl RemoteMember {
    pub(crate) fn new(id: MemberId, wire: Arc<Wire>) -> Self {
        Self { id, wire }
    }

    /// Sends the request; of its answer takes what `part` finds in it.
    fn ask<T: 'static>(
        &self,
        request: Request,
        part: fn(Answer) -> Option<Result<T, Error>>,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let asking = Arc::clone(&self.wire).ask(request);
        Box::pin(async move {
            let mismatch = || Error::new(ErrorKind::Garbled, "an answer to something else");
            part(asking.await?).ok_or_else(mismatch)?
        })
    }
}

/// The part of an [`Answer`] that is of this variant.
macro_rules! part {
    ($variant:ident) => {
        |answer| match answer {
            Answer::$variant(part) => Some(part),
            _ => None,
        }
    };
}

impl Store for RemoteMember {
    fn describe(&self) -> String {
        self.id.to_string()
    }

    fn guarantees(&self) -> Guarantees {
        self.wire.server().store().guarantees()
    }

    fn terms(&self) -> LeaseTerms {
        self.wire.server().store().terms()
    }

    fn acquire<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Attempt, Error>> {
        self.ask(Request::Acquire(claim.clone()), part!(Acquire))
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<Renewal>> {
        Box::pin(async move {
            match self.renew_sampled(leases).await {
                Ok(sampled) => sampled.answer,
                Err(error) => vec![Renewal::Unknown(error); leases.len()],
            }
        })
    }

    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Release, Error>> {
        self.ask(Request::Release(claim.clone()), part!(Release))
    }

    fn wait<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, ()> {
        self.wire.server().store().wait(claim)
    }

    fn inspection(&self) -> Option<&dyn Inspection> {
        Some(self)
    }

    fn admin(&self) -> Option<&dyn Admin> {
        Some(self)
    }
}

impl Inspection for RemoteMember {
    fn holders<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Holder>, Error>> {
        self.ask(Request::Holders(key.clone()), part!(Holders))
    }

    fn waiters<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Waiter>, Error>> {
        self.ask(Request::Waiters(key.clone()), part!(Waiters))
    }

    fn list<'a>(&'a self, prefix: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Key>, Error>> {
        self.ask(Request::List(prefix.to_owned(), limit), part!(List))
    }

    fn survey<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Survey, Error>> {
        self.ask(Request::Survey(pattern.clone(), limit), part!(Survey))
    }
}

impl Admin for RemoteMember {
    fn break_lease<'a>(
        &'a self,
        key: &'a Key,
        record: &'a BreakRecord,
    ) -> BoxFuture<'a, Result<Broken, Error>> {
        self.ask(Request::Break(key.clone(), record.clone()), part!(Break))
    }

    fn last_break<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<BreakRecord>, Error>> {
        self.ask(Request::LastBreak(key.clone()), part!(LastBreak))
    }
}

impl Member for RemoteMember {
    fn id(&self) -> &MemberId {
        &self.id
    }

    fn acquire_in_turn<'a>(
        &'a self,
        claim: &'a Claim,
        turn: &'a Turn,
    ) -> BoxFuture<'a, Result<Attempt, Error>> {
        let request = Request::AcquireInTurn(claim.clone(), *turn);
        self.ask(request, part!(Acquire))
    }

    fn depart<'a>(
        &'a self,
        claim: &'a Claim,
        departure: &'a Departure,
    ) -> BoxFuture<'a, Result<Release, Error>> {
        let request = Request::Depart(claim.clone(), *departure);
        self.ask(request, part!(Release))
    }

    fn leave_queue<'a>(&'a self, key: &'a Key, waiter: Owner) -> BoxFuture<'a, Result<(), Error>> {
        let request = Request::LeaveQueue(key.clone(), waiter);
        self.ask(request, part!(LeaveQueue))
    }

    fn listen(&self, ear: Ear) {
        self.wire.listen(ear);
    }

    fn seal<'a>(
        &'a self,
        claim: &'a Claim,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Sampled<Seal>, Error>> {
        self.ask(Request::Seal(claim.clone(), fence), part!(Seal))
    }

    fn renew_sampled<'a>(
        &'a self,
        leases: &'a [Held],
    ) -> BoxFuture<'a, Result<Sampled<Vec<Renewal>>, Error>> {
        self.ask(Request::Renew(leases.to_vec()), part!(Renew))
    }

    fn heal<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Result<(), Error>> {
        self.ask(Request::Heal(leases.to_vec()), part!(Heal))
    }

    fn presence(&self) -> BoxFuture<'_, Result<Presence, Error>> {
        self.ask(Request::Presence, part!(Presence))
    }

    fn write_card<'a>(&'a self, edit: &'a CardEdit) -> BoxFuture<'a, Result<bool, Error>> {
        self.ask(Request::WriteCard(edit.clone()), part!(WriteCard))
    }

    fn witness<'a>(&'a self, seen: &'a [(MemberId, Life)]) -> BoxFuture<'a, Result<(), Error>> {
        self.ask(Request::Witness(seen.to_vec()), part!(Witness))
    }
}
