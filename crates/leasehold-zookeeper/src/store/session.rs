//! The locks of one client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::look::Owner;
use leasehold::store::{
    AcquireError, Admin, BoxFuture, Grant, Held, Inspection, LockRequest, Progress, Records,
    ReleaseReply, RenewReply, Session, SessionContext, locked,
};
use leasehold::{Error, Key};

use super::counters::Counters;
use super::looks::Looks;
use super::refusal::refused;
use crate::client::{self, Access, Code, Connection, Lifetime, Op, Servers};
use crate::queue::Paths;

/// The locks of one client, in one session of the server.
#[derive(Clone, Debug)]
pub(super) struct LockSession(pub(super) Arc<LocksInner>);

#[derive(Debug)]
pub(super) struct LocksInner {
    pub(super) server: client::Session,
    pub(super) context: SessionContext,
    places: Mutex<Places>,
    pub(super) looks: Looks,
    pub(super) counters: Counters,
}

/// What each owner has or may have at the server.
#[derive(Debug, Default)]
struct Places {
    by_owner: HashMap<Owner, Place>,
    /// How many owners have a place in the queue of each lock.
    in_queue: HashMap<Key, usize>,
}

/// What an owner has in the queue of a lock.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The session that created the node. The node ends with it.
    pub(super) session: i64,
    /// The name of the node; `None` as long as the answer to its creation is missing.
    pub(super) node: Option<String>,
    pub(super) is_granted: bool,
    /// Whether the node says that the lock is shared now.
    pub(super) is_downgraded: bool,
}

/// How long a request that belongs to no lock may wait for a connection.
pub(super) const LIMIT: Duration = LockRequest::LIMIT_MAX;

/// The session timeout where no lock asks for one.
const TIMEOUT: Duration = Duration::from_secs(30);

impl LockSession {
    pub(super) fn new(servers: Arc<Servers>, context: SessionContext) -> Self {
        Self(Arc::new(LocksInner {
            server: client::Session::new(servers, context.clone()),
            context,
            places: Mutex::default(),
            looks: Looks::default(),
            counters: Counters::default(),
        }))
    }
}

impl LocksInner {
    pub(super) fn place(&self, owner: Owner) -> Option<Place> {
        locked(&self.places).by_owner.get(&owner).cloned()
    }

    /// Notes the place of the owner of `request`. Returns whether it is the only one of this client in its queue.
    pub(super) fn note(&self, request: &LockRequest, place: Place) -> bool {
        let mut places = locked(&self.places);
        let is_new = places.by_owner.insert(request.owner, place).is_none();
        let count = places.in_queue.entry(request.key.clone()).or_default();
        *count += usize::from(is_new);
        *count == 1
    }

    pub(super) fn forget(&self, request: &LockRequest) {
        let mut places = locked(&self.places);
        if places.by_owner.remove(&request.owner).is_none() {
            return;
        }
        if let Some(count) = places.in_queue.get_mut(&request.key) {
            *count -= 1;
            if *count == 0 {
                places.in_queue.remove(&request.key);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn owners(&self) -> usize {
        let places = locked(&self.places);
        places.by_owner.len().max(places.in_queue.len())
    }

    /// Ends the session if no owner has a place in it, and waits for that. A session that is not closed would stay at the
    /// server until its timeout.
    async fn close_if_idle(&self) {
        {
            // An owner notes its place first, and then checks that the session still is the current one.
            let places = locked(&self.places);
            if !places.by_owner.is_empty() {
                return;
            }
            self.server.begin_close();
        }
        self.server.closed().await;
    }

    /// Changes the place of an owner that has one.
    pub(super) fn change(&self, owner: Owner, change: impl FnOnce(&mut Place)) {
        if let Some(place) = locked(&self.places).by_owner.get_mut(&owner) {
            change(place);
        }
    }

    /// Returns the connection for a request of a lock.
    pub(super) async fn connection_for(
        &self,
        request: &LockRequest,
    ) -> Result<Arc<Connection>, Error> {
        let timeout = self.server.servers().url.timeout.unwrap_or(request.ttl);
        self.server.connection(request.limit(), timeout).await
    }

    /// Returns the connection for everything else.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, Error> {
        let timeout = self.server.servers().url.timeout.unwrap_or(TIMEOUT);
        self.server.connection(LIMIT, timeout).await
    }

    pub(super) fn root(&self) -> &str {
        &self.server.servers().url.root
    }

    pub(super) fn paths(&self, key: &Key) -> Paths {
        Paths::of(self.root(), key)
    }

    /// The clients that may use new nodes.
    pub(super) fn access(&self) -> Access {
        match self.server.servers().url.login {
            Some(_) => Access::Creator,
            None => Access::Open,
        }
    }

    /// Creates `folder` with all that is above it, unless it exists.
    pub(super) async fn ensure_folder(
        &self,
        connection: &Connection,
        folder: &str,
        lifetime: Lifetime,
    ) -> Result<(), Error> {
        let mut missing = vec![folder];
        while let Some(path) = missing.last().copied() {
            let lifetime = if path == folder {
                lifetime
            } else {
                Lifetime::Persistent
            };
            match connection
                .create(path, &[], lifetime, self.access())
                .await?
            {
                Ok(_) | Err(Code::NODE_EXISTS) => drop(missing.pop()),
                Err(Code::NO_NODE) => match path.rsplit_once('/') {
                    Some((above, _)) if !above.is_empty() && missing.len() < 64 => {
                        missing.push(above);
                    }
                    _ => return Err(refused(path, Code::NO_NODE)),
                },
                Err(code) => return Err(refused(path, code)),
            }
        }
        Ok(())
    }
}

impl Connection {
    pub(super) async fn create(
        &self,
        path: &str,
        data: &[u8],
        lifetime: Lifetime,
        access: Access,
    ) -> Result<Result<(), Code>, Error> {
        let op = Op::Create(path, data, lifetime, access);
        let created = self.ask(&op, client::created).await?;
        Ok(created.map(|answer| self.learn_leader_clock(answer.value.1)))
    }
}

impl Session for LockSession {
    fn acquire<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<Grant, AcquireError>> {
        self.0.context.in_runtime(self.0.acquire(request, progress))
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<RenewReply>> {
        Box::pin(self.0.renew(leases))
    }

    fn release<'a>(
        &'a self,
        request: &'a Arc<LockRequest>,
    ) -> BoxFuture<'a, Result<ReleaseReply, Error>> {
        self.0.context.in_runtime(self.0.release(request))
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.close_if_idle())
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
