use leasehold::{
    Attempt, BoxFuture, CardEdit, Claim, Departure, Ear, Error, ErrorKind, Fence, Guarantees, Held,
    Inspection, Key, LeaseTerms, Life, Member, MemberId, Owner, Presence, Release, Renewal,
    Sampled, Seal, Store, Turn,
};
use leasehold_redis::RedisMember;

/// A member that reports its state and refuses every write. A quorum of these judges its members like any
/// other, and writes no records.
#[derive(Debug)]
pub(super) struct Onlooker(pub(super) RedisMember);

fn refused<'a, T: Send + 'a>() -> BoxFuture<'a, Result<T, Error>> {
    Box::pin(std::future::ready(Err(error())))
}

fn error() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "read-only access: nothing is written",
    )
}

impl Store for Onlooker {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }

    fn terms(&self) -> LeaseTerms {
        self.0.terms()
    }

    fn acquire<'a>(&'a self, _: &'a Claim) -> BoxFuture<'a, Result<Attempt, Error>> {
        refused()
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<Renewal>> {
        let unknown = leases.iter().map(|_| Renewal::Unknown(error())).collect();
        Box::pin(std::future::ready(unknown))
    }

    fn release<'a>(&'a self, _: &'a Claim) -> BoxFuture<'a, Result<Release, Error>> {
        refused()
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        self.0.settle()
    }

    fn wait<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, ()> {
        self.0.wait(claim)
    }

    fn inspection(&self) -> Option<&dyn Inspection> {
        self.0.inspection()
    }
}

impl Member for Onlooker {
    fn id(&self) -> &MemberId {
        self.0.id()
    }

    fn seal<'a>(&'a self, _: &'a Claim, _: Fence) -> BoxFuture<'a, Result<Sampled<Seal>, Error>> {
        refused()
    }

    fn acquire_in_turn<'a>(
        &'a self,
        _: &'a Claim,
        _: &'a Turn,
    ) -> BoxFuture<'a, Result<Attempt, Error>> {
        refused()
    }

    fn depart<'a>(
        &'a self,
        _: &'a Claim,
        _: &'a Departure,
    ) -> BoxFuture<'a, Result<Release, Error>> {
        refused()
    }

    fn leave_queue<'a>(&'a self, _: &'a Key, _: Owner) -> BoxFuture<'a, Result<(), Error>> {
        refused()
    }

    fn listen(&self, _: Ear) {}

    fn renew_sampled<'a>(
        &'a self,
        _: &'a [Held],
    ) -> BoxFuture<'a, Result<Sampled<Vec<Renewal>>, Error>> {
        refused()
    }

    fn heal<'a>(&'a self, _: &'a [Held]) -> BoxFuture<'a, Result<(), Error>> {
        refused()
    }

    fn presence(&self) -> BoxFuture<'_, Result<Presence, Error>> {
        self.0.presence()
    }

    fn write_card<'a>(&'a self, _: &'a CardEdit) -> BoxFuture<'a, Result<bool, Error>> {
        refused()
    }

    fn witness<'a>(&'a self, _: &'a [(MemberId, Life)]) -> BoxFuture<'a, Result<(), Error>> {
        refused()
    }
}
