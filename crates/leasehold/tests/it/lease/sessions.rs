//! A store whose leases end with a session: it grants less than a lock asks for.

use std::fmt;
use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::memory::MemoryStore;
use leasehold::store::{
    AcquireError, BoxFuture, Exclusion, Expiry, Grant, Guarantees, Held, LeaseTerms, LockRequest,
    Order, Progress, ReleaseReply, RenewReply, Session, SessionContext, Store, Term, locked,
};
use leasehold::{Error, ErrorKind};
use leasehold_testkit::virtual_env;

use crate::fixture::{TTL, client};

/// The longest lease that the sessions allow.
const GRANTED: Duration = Duration::from_secs(3);

#[derive(Debug)]
struct Sessions {
    memory: MemoryStore,
    expiry: Expiry,
    releases: Arc<Releases>,
}

#[derive(Debug)]
struct ShortSession(Arc<dyn Session>, Arc<Releases>);

/// The releases that the store was asked for.
#[derive(Debug, Default)]
struct Releases {
    count: AtomicUsize,
    /// Why they fail.
    fail: Mutex<Option<ErrorKind>>,
}

impl Sessions {
    fn new(expiry: Expiry) -> Self {
        Self {
            memory: MemoryStore::new(),
            expiry,
            releases: Arc::default(),
        }
    }
}

impl fmt::Display for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sessions")
    }
}

impl Store for Sessions {
    fn guarantees(&self) -> Guarantees {
        Guarantees::new(Exclusion::Process, self.expiry, Order::Fifo)
    }

    fn terms(&self) -> LeaseTerms {
        self.memory.terms()
    }

    fn open(&self, context: SessionContext) -> Arc<dyn Session> {
        let releases = Arc::clone(&self.releases);
        Arc::new(ShortSession(self.memory.open(context), releases))
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
    ) -> BoxFuture<'a, Result<ReleaseReply, Error>> {
        self.1.count.fetch_add(1, Ordering::SeqCst);
        match *locked(&self.1.fail) {
            Some(kind) => Box::pin(ready(Err(Error::new(kind, "not now")))),
            None => self.0.release(request),
        }
    }
}

/// Nothing else frees such a lock while its client lives.
#[tokio::test(start_paused = true)]
async fn lock_without_an_end_is_released_in_the_end() {
    for (expiry, kind) in [
        (Expiry::WithSession, ErrorKind::Unreachable),
        (Expiry::WithSession, ErrorKind::Refused),
        (Expiry::WithProcess, ErrorKind::Unreachable),
    ] {
        let (env, store) = (virtual_env(1), Sessions::new(expiry));
        let releases = Arc::clone(&store.releases);
        let client = client(Arc::new(store) as Arc<dyn Store>, &env);
        let guard = client.lock("x").ttl(TTL).acquire().await.unwrap();
        *locked(&releases.fail) = Some(kind);
        drop(guard);
        env.clock.sleep_until(env.clock.now() + 3 * TTL).await;
        let failed = releases.count.load(Ordering::SeqCst);
        *locked(&releases.fail) = None;
        client.close(TTL).await.unwrap();
        let count = releases.count.load(Ordering::SeqCst);
        assert_eq!(count, failed + 1, "{expiry:?} {kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn shorter_grant_is_renewed_by_its_own_length() {
    let env = virtual_env(1);
    let client = client(
        Arc::new(Sessions::new(Expiry::WithSession)) as Arc<dyn Store>,
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
        Arc::new(Sessions::new(Expiry::WithSession)) as Arc<dyn Store>,
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
