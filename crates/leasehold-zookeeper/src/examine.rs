//! Facts about an ensemble for an operator, without a judgement.

use std::time::Duration;

use futures_util::future;
use leasehold::clock::within;
use leasehold::env::Env;
use leasehold::{Error, ErrorKind};
use leasehold_credentials::HostPort;

use crate::client::{self, Access, Code, Connection, Greeting, Lifetime, Op, Servers};
use crate::store::ZooKeeperStore;

/// What an examination of an ensemble found.
#[derive(Clone, Debug)]
pub struct Examination {
    /// The node of the locks.
    pub root: String,
    /// Whether the URL has a login.
    pub has_login: bool,
    /// Whether connections are encrypted.
    pub is_encrypted: bool,
    /// Whether all servers are on this machine, by their loopback addresses.
    pub is_local: bool,
    /// Each server of the URL, and what it says about itself.
    pub servers: Vec<(String, Result<ServerFacts, Error>)>,
    /// The session that a client gets.
    pub session: Result<SessionFacts, Error>,
}

/// What a server says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// Its version. `None` if its configuration does not allow the question.
    pub version: Option<String>,
    /// `leader`, `follower`, `observer` or `standalone`. `None` if its configuration does not allow the question.
    pub mode: Option<String>,
    /// How long it took to open a session, or to answer.
    pub took: Duration,
}

/// What a client may do in its session.
#[derive(Clone, Debug)]
pub struct SessionFacts {
    /// The timeout that the URL asks for.
    pub asked: Option<Duration>,
    /// The shortest session timeout that the servers grant: two ticks, unless the configuration says otherwise.
    pub shortest: Duration,
    /// The longest session timeout that the servers grant.
    pub longest: Duration,
    /// Whether the node of the locks exists.
    pub root_exists: bool,
    /// The node at which the login lacks rights, and the command that grants them.
    pub missing_right: Option<(String, String)>,
}

impl ZooKeeperStore {
    /// Examines the ensemble within `limit`: each server, the limits of sessions, and the rights of the login. A server whose
    /// answer comes later counts as silent. Changes nothing: it tries the rights in a transaction that is bound to fail. Needs a
    /// Tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connections, which nothing else uses.
    pub async fn examine(&self, limit: Duration) -> Examination {
        let (servers, env) = (self.ensemble(), Env::default());
        let each = servers.url.servers.iter();
        let found = each.map(|server| in_time(&env, limit, facts(servers, server, limit, &env)));
        let (found, session) = future::join(
            future::join_all(found),
            in_time(&env, limit, session_facts(servers, &env)),
        )
        .await;
        Examination {
            root: servers.url.root.clone(),
            has_login: servers.url.login.is_some(),
            is_encrypted: servers.url.tls.is_some(),
            is_local: servers.url.servers.iter().all(HostPort::is_loopback),
            servers: servers.url.hosts().into_iter().zip(found).collect(),
            session,
        }
    }
}

/// Returns the answer, unless it comes too late.
async fn in_time<T>(
    env: &Env,
    limit: Duration,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let answer = within(&*env.clock, env.clock.now() + limit, answer).await;
    answer.unwrap_or_else(|| Err(Error::no_answer_within(limit)))
}

/// Asks one server about itself. If it does not allow that, it must at least open a session.
async fn facts(
    servers: &Servers,
    server: &HostPort,
    limit: Duration,
    env: &Env,
) -> Result<ServerFacts, Error> {
    let began = env.clock.now();
    let mut facts = read_facts(&servers.srvr(server).await?);
    if facts.mode.is_none() {
        servers.open_on(server, None, limit, &env.clock).await?;
    }
    facts.took = env.clock.now().since(began);
    Ok(facts)
}

pub(crate) fn read_facts(answer: &str) -> ServerFacts {
    let after = |start: &str| answer.lines().find_map(|line| line.strip_prefix(start));
    let version = after("Zookeeper version: ").and_then(|rest| rest.split(['-', ',', ' ']).next());
    ServerFacts {
        version: version.map(ToOwned::to_owned),
        mode: after("Mode: ").map(|mode| mode.trim().to_owned()),
        took: Duration::ZERO,
    }
}

async fn session_facts(servers: &Servers, env: &Env) -> Result<SessionFacts, Error> {
    let mut limits = Vec::new();
    for asked in [Duration::from_millis(1), Duration::from_secs(24 * 60 * 60)] {
        limits.push(open(servers, asked, env).await?);
    }
    let [shortest, longest] = &limits[..] else {
        return Err(Error::new(ErrorKind::InvalidResponse, "no session limits"));
    };
    let root = &servers.url.root;
    let root_exists = exists(longest, root).await?;
    let access = match servers.url.login {
        Some(_) => Access::Creator,
        None => Access::Open,
    };
    Ok(SessionFacts {
        asked: servers.url.timeout,
        shortest: shortest.timeout,
        longest: longest.timeout,
        root_exists,
        missing_right: missing_right(longest, servers, access).await?,
    })
}

/// Opens a session for this examination.
async fn open(servers: &Servers, timeout: Duration, env: &Env) -> Result<Connection, Error> {
    match servers.open(None, timeout, env).await? {
        Greeting::Open(opened) => {
            let (connection, driver, _) = *opened;
            // Ends with the connection, and then ends the session.
            leasehold::store::background::spawn(driver.run(None));
            Ok(connection)
        }
        Greeting::Expired => Err(Error::new(
            ErrorKind::Refused,
            "the server offers no session",
        )),
    }
}

async fn exists(connection: &Connection, path: &str) -> Result<bool, Error> {
    match connection.ask(&Op::Exists(path), client::nothing).await? {
        Ok(_) => Ok(true),
        Err(Code::NO_NODE) => Ok(false),
        Err(code) => Err(Error::new(
            ErrorKind::Refused,
            format!("{path}: {}", code.name()),
        )),
    }
}

/// Tries what locks do, in a transaction whose last part always fails: no node has the name that it checks.
async fn missing_right(
    connection: &Connection,
    servers: &Servers,
    access: Access,
) -> Result<Option<(String, String)>, Error> {
    let root = &servers.url.root;
    // The folders that are missing are created first, from the top.
    let mut folders = vec![root.as_str()];
    while let Some((above, _)) = folders[folders.len() - 1].rsplit_once('/') {
        if above.is_empty() {
            break;
        }
        folders.push(above);
    }
    let mut missing = Vec::new();
    for folder in folders.into_iter().rev().filter(|folder| *folder != "/") {
        if !exists(connection, folder).await? {
            missing.push(folder);
        }
    }
    let probe = format!("{}/leasehold:probe", root.trim_end_matches('/'));
    let never = format!("{probe}/none");
    let mut parts: Vec<Op<'_>> = missing
        .iter()
        .map(|folder| Op::Create(folder, &[], Lifetime::Persistent, access))
        .collect();
    let first = parts.len();
    parts.extend([
        Op::Check(root),
        Op::Create(&probe, &[], Lifetime::Persistent, access),
        Op::SetData(&probe, &[], client::ANY),
        Op::Delete(&probe, client::ANY),
        Op::Check(&never),
    ]);
    let last = parts.len() - 1;
    match connection.transact(parts).await? {
        Err((part, Code::NO_NODE)) if part == last => Ok(None),
        Err((part, Code::NO_AUTH)) => {
            let place = match missing.get(part) {
                Some(folder) if part < first => {
                    folder.rsplit_once('/').map_or("/", |(above, _)| above)
                }
                _ => root,
            };
            let place = if place.is_empty() { "/" } else { place };
            let command = match &servers.url.login {
                Some(login) => {
                    let user = &login.user;
                    format!("addauth digest {user}:<password>; setAcl {place} auth:{user}:cdrwa")
                }
                None => format!("setAcl {place} world:anyone:cdrwa"),
            };
            Ok(Some((place.to_owned(), command)))
        }
        Err((_, code)) => Err(Error::new(
            ErrorKind::Refused,
            format!("{root}: {}", code.name()),
        )),
        Ok(_) => Err(Error::new(
            ErrorKind::InvalidResponse,
            "a node exists that has no name",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_from_the_answer() {
        let answer = "Zookeeper version: 3.8.0-5a02a05, built on 2022-02-25\nLatency min/avg/max: 0/0.0/0\n\
                      Mode: follower\nNode count: 5\n";
        let facts = read_facts(answer);
        assert_eq!(facts.version.as_deref(), Some("3.8.0"));
        assert_eq!(facts.mode.as_deref(), Some("follower"));
        let refused = "srvr is not executed because it is not in the whitelist.\n";
        assert_eq!(read_facts(refused), ServerFacts::default());
    }
}
