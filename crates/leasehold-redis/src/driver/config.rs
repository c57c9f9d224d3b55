use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::Clock;
use leasehold::env::Env;
use leasehold::look::{ClientId, ClientInfo};
use leasehold::member::{MemberId, MemberSet};
use leasehold::store::SessionContext;
use leasehold::telemetry::MemberGauges;
use leasehold_quorum::{Config, MemberIndex, PerMember};

use super::connection_task::ConnectionTask;
use crate::codec::Codec;
use crate::connection::connector::Connector;
use crate::connection::state::Connection;
use crate::url::{RedisUrl, user_of};

/// What a [`Driver`](super::Driver) connects to.
pub struct DriverConfig {
    /// The metric of the members' states.
    pub gauges: Option<MemberGauges>,
    /// The members.
    pub urls: Vec<RedisUrl>,
    /// The longest TTL of any lease.
    pub max_ttl: Duration,
    /// The greatest difference between the clocks of members.
    pub clock_tolerance: Duration,
    /// Whether only trusted members have a vote.
    pub enforced: bool,
    /// Whether nothing is written to the members: for tools that only read.
    pub read_only: bool,
}

/// What a driver is made of.
pub(super) struct Parts {
    pub(super) engine: Option<Config>,
    pub(super) members: PerMember<MemberId>,
    pub(super) gauges: Option<MemberGauges>,
    pub(super) connections: PerMember<Connection>,
    pub(super) tasks: Vec<ConnectionTask>,
    pub(super) clock: Arc<dyn Clock>,
}

impl DriverConfig {
    /// Sorts the members by their ids, as the engine numbers them.
    pub(super) fn into_parts(self, context: &SessionContext) -> Parts {
        let env = context.env();
        let mut urls = self.urls;
        urls.sort_by(|one, other| one.id.cmp(&other.id));
        let ids = urls.iter().map(|url| url.id.clone());
        let engine = Config {
            set: MemberSet::new(ids, self.max_ttl, self.clock_tolerance),
            enforced: self.enforced,
            read_only: self.read_only,
            entropy: Arc::clone(&env.entropy),
        };
        let mut parts = Parts::new(urls, Some(context.client()), env);
        if !self.read_only && !self.enforced {
            parts.refuse_eviction();
        }
        parts.engine = Some(engine);
        parts.gauges = self.gauges;
        parts
    }
}

impl Parts {
    /// Returns the parts of a driver without an engine. A client is present at the servers if there is one.
    pub(super) fn new(urls: Vec<RedisUrl>, client: Option<&Arc<ClientInfo>>, env: &Env) -> Self {
        let id = client.map_or_else(|| ClientId::random(&*env.entropy), |client| client.id);
        let connection = |url: &RedisUrl| {
            let codec = Codec {
                prefix: url.prefix.clone(),
                user: user_of(url.login.as_ref()).to_owned(),
                client: id,
            };
            Connection::new(codec, client.cloned())
        };
        let task = |(member, url): (MemberIndex, RedisUrl)| ConnectionTask {
            member,
            connector: Connector::new(url, client.cloned()),
            env: env.clone(),
        };
        Self {
            engine: None,
            gauges: None,
            members: urls.iter().map(|url| url.id.clone()).collect(),
            connections: urls.iter().map(connection).collect(),
            clock: Arc::clone(&env.clock),
            tasks: PerMember::from(urls)
                .into_iter_enumerated()
                .map(task)
                .collect(),
        }
    }
}

impl Parts {
    /// No engine checks that these servers keep locks.
    fn refuse_eviction(&mut self) {
        for task in &mut self.tasks {
            task.connector.refuses_eviction = !task.connector.url.accepts_eviction;
        }
    }
}

impl fmt::Debug for DriverConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URLs may have passwords.
        f.debug_struct("DriverConfig")
            .field("members", &self.urls.len())
            .field("enforced", &self.enforced)
            .finish_non_exhaustive()
    }
}
