use std::sync::Arc;

use leasehold::Error;
use leasehold::store::{
    AcquireError, Admin, BoxFuture, Grant, Held, Inspection, LockRequest, Progress, Records,
    ReleaseReply, RenewReply, Session, SessionContext,
};

use super::acquire;
use super::inner::EtcdInner;
use super::release;
use crate::settings::Settings;

/// The locks of one client.
#[derive(Clone, Debug)]
pub(super) struct EtcdSession(pub(super) Arc<EtcdInner>);

impl EtcdSession {
    pub(super) fn open(settings: Arc<Settings>, context: SessionContext) -> Self {
        Self(Arc::new(EtcdInner::new(settings, context)))
    }
}

impl Session for EtcdSession {
    fn acquire<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<Grant, AcquireError>> {
        Box::pin(async move {
            let client = self.0.here().await;
            let acquiring = acquire::acquire(&self.0, &client, request, progress);
            self.0.context.in_runtime(acquiring).await
        })
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<RenewReply>> {
        Box::pin(self.0.renew(leases))
    }

    fn release<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
    ) -> BoxFuture<'a, Result<ReleaseReply, Error>> {
        Box::pin(release::release(&self.0, request))
    }

    fn detach(&self, request: &Arc<LockRequest>) {
        self.0.own.remove(request.owner);
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.flush())
    }

    fn inspection(&self) -> Option<&dyn Inspection> {
        Some(self)
    }

    fn admin(&self) -> Option<&dyn Admin> {
        Some(self)
    }

    fn records(&self) -> Option<&dyn Records> {
        Some(self)
    }
}
