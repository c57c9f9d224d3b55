//! A store whose leases end with a session: it grants less than a lock asks for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold::ErrorKind;
use leasehold::memory::MemoryStore;
use leasehold::store::{
    AcquireError, BoxFuture, Exclusion, Expiry, Grant, Guarantees, Held, LeaseTerms, LockRequest,
    Order, Progress, ReleaseReply, RenewReply, Session, SessionContext, Store, Term,
};
use leasehold_testkit::virtual_env;

use crate::fixture::{TTL, client};

/// The longest lease that the sessions allow.
const GRANTED: Duration = Duration::from_secs(3);

#[derive(Debug)]
struct Sessions(MemoryStore);

#[derive(Debug)]
struct ShortSession(Arc<dyn Session>);

impl fmt::Display for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sessions")
    }
}

impl Store for Sessions {
    fn guarantees(&self) -> Guarantees {
        Guarantees::new(Exclusion::Process, Expiry::WithSession, Order::Fifo)
    }

    fn terms(&self) -> LeaseTerms {
        self.0.terms()
    }

    fn open(&self, context: SessionContext) -> Arc<dyn Session> {
        Arc::new(ShortSession(self.0.open(context)))
    }
}

fn short(term: Term) -> Term {
    Term::new(term.since, GRANTED)
}

impl Session for ShortSession {
    fn acquire<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<Grant, AcquireError>> {
        Box::pin(async move {
            let mut grant = self.0.acquire(request, progress).await?;
            grant.term = short(grant.term);
            Ok(grant)
        })
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<RenewReply>> {
        Box::pin(async move {
            let replies = self.0.renew(leases).await.into_iter();
            let shorten = |reply| match reply {
                RenewReply::Renewed(term) => RenewReply::Renewed(short(term)),
                other => other,
            };
            replies.map(shorten).collect()
        })
    }

    fn release<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
    ) -> BoxFuture<'a, Result<ReleaseReply, leasehold::Error>> {
        self.0.release(request)
    }
}

#[tokio::test(start_paused = true)]
async fn shorter_grant_is_renewed_by_its_own_length() {
    let env = virtual_env(1);
    let client = client(
        Arc::new(Sessions(MemoryStore::new())) as Arc<dyn Store>,
        &env,
    );
    let asked = env.clock.now();
    let guard = client.lock("x").ttl(TTL).acquire().await.unwrap();
    let deadline = guard.deadline().unwrap().since(asked);
    assert!(deadline < GRANTED && deadline > GRANTED / 2, "{deadline:?}");
    let first = guard.deadline_moved(guard.deadline()).await;
    assert!(env.clock.now().since(asked) <= GRANTED / 3);
    assert!(first.unwrap().since(env.clock.now()) < GRANTED);
    env.clock
        .sleep_until(asked + Duration::from_secs(120))
        .await;
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn session_offers_no_delay_and_no_handle() {
    let env = virtual_env(1);
    let client = client(
        Arc::new(Sessions(MemoryStore::new())) as Arc<dyn Store>,
        &env,
    );
    let delayed = client
        .lock("x")
        .lock_delay(Duration::from_secs(1))
        .acquire()
        .await;
    assert_eq!(delayed.unwrap_err().kind(), ErrorKind::Unsupported);
    let guard = client.lock("x").acquire().await.unwrap();
    assert!(guard.into_handle().is_err());
}
