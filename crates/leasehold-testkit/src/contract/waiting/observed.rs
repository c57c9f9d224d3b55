use std::fmt;
use std::sync::{Arc, Mutex};

use leasehold::Error;
use leasehold::store::{
    AcquireError, BoxFuture, Grant, Guarantees, Held, LeaseTerms, LockRequest, Progress,
    ReleaseReply, RenewReply, Report, Session, SessionContext, Store, locked,
};

/// A store whose reports a test can see.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    inner: Arc<dyn Store>,
    reports: Reports,
}

/// The reports of a store, including the errors that end an attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct Reports(Arc<Mutex<Option<Report>>>);

#[derive(Debug)]
struct ObservedSession {
    inner: Arc<dyn Session>,
    reports: Reports,
}

impl Observed {
    pub(super) fn new(inner: Arc<dyn Store>) -> Self {
        let reports = Reports::default();
        Self { inner, reports }
    }

    pub(super) fn reports(&self) -> Reports {
        self.reports.clone()
    }
}

impl Reports {
    pub(super) fn last(&self) -> Option<Report> {
        locked(&self.0).clone()
    }

    fn note(&self, report: Report) {
        *locked(&self.0) = Some(report);
    }
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl From<Observed> for Arc<dyn Store> {
    fn from(store: Observed) -> Self {
        Arc::new(store)
    }
}

impl Store for Observed {
    fn guarantees(&self) -> Guarantees {
        self.inner.guarantees()
    }

    fn terms(&self) -> LeaseTerms {
        self.inner.terms()
    }

    fn open(&self, context: SessionContext) -> Arc<dyn Session> {
        Arc::new(ObservedSession {
            inner: self.inner.open(context),
            reports: self.reports.clone(),
        })
    }
}

impl Session for ObservedSession {
    fn acquire<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
        _: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<Grant, AcquireError>> {
        let reports = self.reports.clone();
        Box::pin(async move {
            let heard = reports.clone();
            let listener = move |report: &Report| heard.note(report.clone());
            let answer = self
                .inner
                .acquire(request, &Progress::heard_by(&listener))
                .await;
            if let Err(AcquireError::Failed(error)) = &answer {
                reports.note(Report::Unavailable(error.clone()));
            }
            answer
        })
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

    fn detach(&self, request: &Arc<LockRequest>) {
        self.inner.detach(request);
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        self.inner.flush()
    }
}
