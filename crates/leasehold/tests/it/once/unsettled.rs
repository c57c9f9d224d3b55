//! A value that only a minority of a quorum has.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold::look::Pattern;
use leasehold::memory::MemoryStore;
use leasehold::store::{
    AcquireError, BoxFuture, Grant, Guarantees, Held, LeaseTerms, LockRequest, Opened, Progress,
    Reading, RecordKey, RecordWrite, Records, ReleaseReply, RenewReply, Session, SessionContext,
    Store, WriteOutcome,
};
use leasehold::{Error, Fence, Key};

use crate::fixture::{Fixture, TTL, client};

/// A store that says of each value that only a minority has it, until the value is written again.
#[derive(Clone, Debug)]
struct Minority {
    inner: MemoryStore,
    is_settled: Arc<AtomicBool>,
}

#[derive(Debug)]
struct MinoritySession {
    store: Minority,
    inner: Arc<dyn Session>,
}

impl MinoritySession {
    fn shown(&self, mut reading: Reading) -> Reading {
        reading.settled &= self.store.is_settled.load(Ordering::Relaxed);
        reading
    }

    fn records(&self) -> &dyn Records {
        self.inner.records().expect("records")
    }
}

impl fmt::Display for Minority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Store for Minority {
    fn guarantees(&self) -> Guarantees {
        self.inner.guarantees()
    }

    fn terms(&self) -> LeaseTerms {
        self.inner.terms()
    }

    fn open(&self, context: SessionContext) -> Arc<dyn Session> {
        Arc::new(MinoritySession {
            store: self.clone(),
            inner: self.inner.open(context),
        })
    }
}

impl Session for MinoritySession {
    fn acquire<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<Grant, AcquireError>> {
        self.inner.acquire(request, progress)
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<RenewReply>> {
        self.inner.renew(leases)
    }

    fn release<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
    ) -> BoxFuture<'a, Result<ReleaseReply, Error>> {
        self.inner.release(request)
    }

    fn records(&self) -> Option<&dyn Records> {
        Some(self)
    }
}

impl Records for MinoritySession {
    fn open_record<'a>(
        &'a self,
        record: &'a RecordKey,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Opened, Error>> {
        Box::pin(async move {
            let opened = self.records().open_record(record, fence).await?;
            Ok(match opened {
                Opened::Open(reading) => Opened::Open(self.shown(reading)),
                other => other,
            })
        })
    }

    fn write_record<'a>(
        &'a self,
        record: &'a RecordKey,
        write: &'a RecordWrite,
    ) -> BoxFuture<'a, Result<WriteOutcome, Error>> {
        self.store.is_settled.store(true, Ordering::Relaxed);
        self.records().write_record(record, write)
    }

    fn read_record<'a>(&'a self, record: &'a RecordKey) -> BoxFuture<'a, Result<Reading, Error>> {
        Box::pin(async move {
            let reading = self.records().read_record(record).await?;
            Ok(self.shown(reading))
        })
    }

    fn list_records<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Key>, Error>> {
        self.records().list_records(pattern, limit)
    }
}

#[tokio::test(start_paused = true)]
async fn minority_value_is_written_before_it_is_returned() {
    let fixture = Fixture::new();
    let store = Minority {
        inner: fixture.memory.clone(),
        is_settled: Arc::default(),
    };
    let client = client(Arc::new(store.clone()) as Arc<dyn Store>, &fixture.env);
    let lock = client.lock("x").ttl(TTL);
    let first = lock.acquire().await.unwrap();
    let retention = Duration::from_secs(3600);
    first.record().write(*b"value", retention).await.unwrap();
    first.release().await.unwrap();
    store.is_settled.store(false, Ordering::Relaxed);
    let next = lock.acquire().await.unwrap();
    let opened = next.record().open().await.unwrap().expect("a value");
    assert_eq!(&*opened.bytes, b"value");
    assert!(store.is_settled.load(Ordering::Relaxed), "written again");
    let reading = client.record("x").read().await.unwrap();
    let version = reading.written.expect("a value").version;
    assert_eq!(version.fence, next.fence());
}
