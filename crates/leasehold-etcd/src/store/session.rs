use std::sync::Arc;

use leasehold::Error;
use leasehold::clock::BootInstant;
use leasehold::store::{
    AcquireError, Admin, BoxFuture, Grant, Held, Inspection, LockRequest, PerRuntime, Progress,
    Records, ReleaseReply, RenewReply, Session, SessionContext,
};
use tokio_util::task::TaskTracker;

use super::acquire;
use super::leases::{OwnLeases, SharedLeases, UsedKeys};
use super::release;
use super::successors::Successors;
use crate::client::EtcdClient;
use crate::locking::Names;
use crate::settings::Settings;

/// The locks of one client.
#[derive(Clone, Debug)]
pub(super) struct EtcdSession(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    settings: Arc<Settings>,
    /// For attempts, and for the first try of a release.
    callers: PerRuntime<EtcdClient>,
    /// For all the rest, on the thread of the client.
    pub(super) client: Arc<EtcdClient>,
    pub(super) context: SessionContext,
    pub(super) names: Names,
    pub(super) own: OwnLeases,
    pub(super) used: UsedKeys,
    pub(super) successors: Successors,
    pub(super) shared: SharedLeases,
    /// The tasks that release.
    pub(super) releases: TaskTracker,
}

impl EtcdSession {
    pub(super) fn open(settings: Arc<Settings>, context: SessionContext) -> Self {
        let releases = TaskTracker::new();
        releases.close();
        let client = EtcdClient::new(Arc::clone(&settings), context.clone(), None);
        let client = Arc::new(client);
        Self(Arc::new(Inner {
            names: Names::new(&settings.prefix),
            callers: PerRuntime::new(Arc::clone(&client)),
            client,
            settings,
            context,
            own: OwnLeases::default(),
            used: UsedKeys::default(),
            successors: Successors::default(),
            shared: SharedLeases::default(),
            releases,
        }))
    }
}

impl Inner {
    /// Returns the client whose connection the runtime of the caller drives.
    pub(super) fn here(&self) -> Arc<EtcdClient> {
        let open = |runtime| {
            let (env, info) = (self.context.env().clone(), self.context.client());
            let context = SessionContext::new(env, Arc::clone(info), runtime);
            let fallback = Some(Arc::clone(&self.client));
            let settings = Arc::clone(&self.settings);
            Arc::new(EtcdClient::new(settings, context, fallback))
        };
        self.callers.here(open, EtcdClient::is_open)
    }

    pub(super) fn now(&self) -> BootInstant {
        self.context.env().clock.now()
    }
}

impl Session for EtcdSession {
    fn acquire<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<Grant, AcquireError>> {
        Box::pin(async move {
            let client = self.0.here();
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
        Box::pin(self.0.releases.wait())
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
