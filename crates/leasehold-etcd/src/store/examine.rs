use std::sync::Arc;
use std::time::Duration;

use futures_util::future;
use leasehold::Error;
use leasehold::clock::{BootInstant, Clock as _, SystemClock, within};
use leasehold::env::Env;
use leasehold::store::{LockRequest, SessionContext};
use leasehold_credentials::HostPort;
use tokio::runtime::Handle;

use super::EtcdStore;
use crate::client::EtcdClient;
use crate::locking::{Names, range};
use crate::proto::{
    Compare, LeaseGrantRequest, LeaseRevokeRequest, MemberListRequest, Operation, PutRequest,
    StatusRequest, TxnRequest,
};
use crate::settings::Settings;

/// How long each question may take.
const LIMIT: Duration = LockRequest::LIMIT_MAX;

/// The facts of an ensemble, for tools that judge it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EtcdFacts {
    /// The servers of the URL, in its order.
    pub servers: Vec<ServerFacts>,
    /// How many voting members the ensemble has.
    pub members: Result<usize, Error>,
    /// Whether the user may read and write all keys under the prefix.
    pub rights: Result<(), Error>,
    /// The command that gives the right to a role called `ROLE`.
    pub grant: String,
    /// The shortest lease that the ensemble grants.
    pub shortest_lease: Result<Duration, Error>,
    /// Whether the connections are encrypted.
    pub is_encrypted: bool,
    /// Whether all servers are on this machine, by their loopback addresses.
    pub is_local: bool,
    /// The user of the URL.
    pub user: Option<String>,
}

/// The facts of one server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerFacts {
    /// Its address.
    pub address: String,
    /// What it says of itself.
    pub status: Result<ServerStatus, Error>,
    /// How long a read took on which a majority of the ensemble agreed.
    pub read: Result<Duration, Error>,
}

/// What a server says of itself.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Its version.
    pub version: String,
    /// The size of its database on the disk, in bytes.
    pub database: u64,
    /// Whether it is the leader.
    pub is_leader: bool,
    /// Whether it knows a leader.
    pub has_leader: bool,
    /// Whether it only learns, and has no vote yet.
    pub is_learner: bool,
    /// What it complains about, such as a full database.
    pub alarms: Vec<String>,
}

impl EtcdStore {
    /// Finds the facts of the ensemble, within `limit`: a server whose answer comes later counts as silent. Must be called in
    /// a tokio runtime. Writes no key: to learn of the shortest lease, it has one granted and revokes it.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. A lease without a key may then live for some seconds.
    pub async fn examine(&self, limit: Duration) -> EtcdFacts {
        let settings = &self.settings;
        let client = client_of(Arc::clone(settings));
        let deadline = Deadline::after(limit);
        let (servers, members, rights, shortest_lease) = future::join4(
            future::join_all(
                settings
                    .servers
                    .iter()
                    .map(|server| facts(settings, server, deadline)),
            ),
            deadline.of(members(&client)),
            deadline.of(rights(&client, settings)),
            deadline.of(shortest_lease(&client)),
        )
        .await;
        EtcdFacts {
            servers,
            members,
            rights,
            grant: grant_command(&settings.prefix),
            shortest_lease,
            is_encrypted: settings.tls.is_some(),
            is_local: settings.servers.iter().all(HostPort::is_loopback),
            user: settings.login.as_ref().map(|login| login.user.clone()),
        }
    }
}

fn client_of(settings: Arc<Settings>) -> EtcdClient {
    let env = Env::default();
    let info = Arc::new(env.this_process(None));
    let context = SessionContext::new(env, info, Handle::current());
    EtcdClient::new(settings, context, None)
}

/// The end of the time for all answers.
#[derive(Clone, Copy)]
struct Deadline {
    limit: Duration,
    end: BootInstant,
}

impl Deadline {
    fn after(limit: Duration) -> Self {
        let end = SystemClock.now() + limit;
        Self { limit, end }
    }

    /// Returns the answer, unless it comes too late.
    async fn of<T>(self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let answer = within(&SystemClock, self.end, answer).await;
        answer.unwrap_or_else(|| Err(Error::no_answer_within(self.limit)))
    }
}

async fn facts(settings: &Settings, server: &HostPort, deadline: Deadline) -> ServerFacts {
    let mut alone = settings.clone();
    alone.servers = vec![server.clone()];
    let client = client_of(Arc::new(alone));
    let status = async {
        let status = client.call(StatusRequest {}, LIMIT).await?;
        let own = status.header.map_or(0, |header| header.member_id);
        Ok(ServerStatus {
            version: status.version,
            database: u64::try_from(status.db_size).unwrap_or_default(),
            is_leader: status.leader != 0 && status.leader == own,
            has_leader: status.leader != 0,
            is_learner: status.is_learner,
            alarms: status.errors,
        })
    };
    let status = deadline.of(status).await;
    let read = async {
        let began = SystemClock.now();
        client.call(settings.probe(), LIMIT).await?;
        Ok(SystemClock.now().since(began))
    };
    ServerFacts {
        address: server.to_string(),
        status,
        read: deadline.of(read).await,
    }
}

async fn members(client: &EtcdClient) -> Result<usize, Error> {
    let list = client.call(MemberListRequest {}, LIMIT).await?;
    let voting = list.members.iter().filter(|member| !member.is_learner);
    Ok(voting.count())
}

/// Asks for a transaction that needs all rights, and whose condition does not hold. The server checks the rights first.
async fn rights(client: &EtcdClient, settings: &Settings) -> Result<(), Error> {
    let probe = settings.probe().key;
    let mut all = range(Names::new(&settings.prefix).starting_with(""));
    all.limit = 1;
    let put = PutRequest {
        key: probe.clone(),
        value: Vec::new(),
        lease: 0,
    };
    let question = TxnRequest {
        compare: vec![Compare::is_at(&probe, -1)],
        success: vec![Operation::Put(put).into()],
        failure: vec![Operation::Range(all).into()],
    };
    client.call(question, LIMIT).await?;
    Ok(())
}

async fn shortest_lease(client: &EtcdClient) -> Result<Duration, Error> {
    let id = (Env::default().entropy.next_u64() as i64 & i64::MAX).max(1);
    let granted = client.call(LeaseGrantRequest { ttl: 1, id }, LIMIT).await?;
    client.call(LeaseRevokeRequest { id }, LIMIT).await?;
    let seconds = u64::try_from(granted.ttl).unwrap_or_default();
    Ok(Duration::from_secs(seconds))
}

fn grant_command(prefix: &str) -> String {
    let quoted = prefix.replace('\'', r"'\''");
    format!("etcdctl role grant-permission ROLE readwrite --prefix=true '{quoted}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_quotes_the_prefix() {
        let command = grant_command("it's/");
        assert!(command.ends_with(r"--prefix=true 'it'\''s/'"), "{command}");
        assert!(grant_command("").ends_with("--prefix=true ''"));
    }
}
