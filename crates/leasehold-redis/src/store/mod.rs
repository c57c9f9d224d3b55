//! Redis servers as a store: the engine handles locks, and the members themselves handle everything else.

mod as_store;
mod errors;
mod health;
mod records;
mod settings;
mod setup;
mod views;
mod wait_queue;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use foldhash::HashMap;
use leasehold::Error;
use leasehold::env::Env;
use leasehold::store::{ClientId, ClientInfo, LeaseTerms, MemberSet};
use leasehold::telemetry::{HandOvers, MemberGauges};

use crate::RedisMember;
use crate::admin::Server;
use crate::driver::{Driver, DriverConfig};
use wait_queue::WaitQueue;

/// One Redis server, or a quorum of several, as a store.
///
/// The first lock opens the connections.
pub struct RedisStore {
    urls: Vec<String>,
    env: Env,
    /// The members for everything except locks, on connections of their own.
    members: Vec<RedisMember>,
    /// The members' ids, and the limits of a quorum that this store initializes.
    set: MemberSet,
    /// The limits that the caller stated.
    limits: Limits,
    enforced: bool,
    read_only: bool,
    hand_overs: HandOvers,
    /// The metric of the members' states, until the first session takes it. It belongs to the recorder of
    /// the thread that created the store.
    gauges: Mutex<Option<MemberGauges>>,
    /// The sessions of the clients that have not ended, and of the clients whose handles are in use. A session
    /// without a user ends at the latest when another begins.
    sessions: RwLock<HashMap<ClientId, Arc<Session>>>,
    /// The client for records that are used before any lock.
    own: OnceLock<Arc<ClientInfo>>,
}

/// The limits that a new quorum gets, if they are not the defaults.
#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    max_ttl: Option<Duration>,
    clock_tolerance: Option<Duration>,
}

/// The connections and waits of one client.
#[derive(Debug)]
struct Session {
    user: Weak<ClientInfo>,
    driver: Driver,
    waits: WaitQueue,
}

impl RedisStore {
    /// Returns the store of the servers at `urls`: one server, or a quorum.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](leasehold::ErrorKind::InvalidInput), naming the URL and the rule that it breaks.
    pub fn new(urls: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, Error> {
        let urls: Vec<String> = urls
            .into_iter()
            .map(|url| url.as_ref().to_owned())
            .collect();
        let env = Env::default();
        let members = RedisMember::sharing_thread(&urls, &env)?;
        let ids = members.iter().map(|member| member.id().clone());
        Ok(Self {
            hand_overs: HandOvers::new(&name(&members)),
            gauges: Mutex::new(Some(MemberGauges::new(&name(&members), members.len()))),
            enforced: urls.len() >= 3,
            read_only: false,
            set: MemberSet::new(ids, LeaseTerms::QUORUM_TTL_MAX, Self::CLOCK_TOLERANCE),
            limits: Limits::default(),
            members,
            urls,
            env,
            sessions: RwLock::default(),
            own: OnceLock::new(),
        })
    }

    /// Returns the session of a client, which starts with its first request.
    fn session(&self, client: &Arc<ClientInfo>) -> Result<Arc<Session>, Error> {
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = sessions.get(&client.id) {
            return Ok(Arc::clone(session));
        }
        drop(sessions);
        let sessions = self.sessions.write();
        let mut sessions = sessions.unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = sessions.get(&client.id) {
            return Ok(Arc::clone(session));
        }
        let driver = Driver::open(DriverConfig {
            gauges: Some(self.gauges()),
            urls: self.urls.clone(),
            max_ttl: self.set.max_ttl,
            clock_tolerance: self.set.clock_tolerance,
            enforced: self.enforced,
            read_only: self.read_only,
            // The session does not count as its own user.
            client: Arc::new(ClientInfo::clone(client)),
            env: self.env.clone(),
        })?;
        let session = Arc::new(Session {
            user: Arc::downgrade(client),
            driver,
            waits: WaitQueue::default(),
        });
        sessions.retain(|_, session| session.is_needed());
        sessions.insert(client.id, Arc::clone(&session));
        Ok(session)
    }

    /// Ends the session of a client. Its connections close once nothing is left to do.
    fn end_session(&self, client: ClientId) {
        let sessions = self.sessions.write();
        let mut sessions = sessions.unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|id, session| *id != client && session.is_needed());
    }

    fn gauges(&self) -> MemberGauges {
        let mut first = self.gauges.lock().unwrap_or_else(PoisonError::into_inner);
        let more = || MemberGauges::new(&self.to_string(), self.members.len());
        first.take().unwrap_or_else(more)
    }

    fn servers(&self) -> impl Iterator<Item = &Server> {
        self.members.iter().map(|member| &member.server)
    }

    fn sessions(&self) -> Vec<Arc<Session>> {
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        sessions.values().cloned().collect()
    }
}

impl Session {
    /// Whether a client uses the session, or [`flush`](leasehold::store::Store::flush) has to wait for it.
    fn is_needed(&self) -> bool {
        self.user.strong_count() > 0 || !self.driver.is_idle()
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URLs may contain passwords.
        f.debug_struct("RedisStore")
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&name(&self.members))
    }
}

/// The only server, or the quorum with all its members.
fn name(members: &[RedisMember]) -> String {
    if let [only] = members {
        return only.to_string();
    }
    let ids: Vec<_> = members.iter().map(|member| member.id().as_str()).collect();
    format!("quorum of {} ({})", ids.len(), ids.join(", "))
}
