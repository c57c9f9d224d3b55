use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold::ambient::Ambient;
use leasehold::clock::Clock;
use leasehold::{ClientInfo, Error, ErrorKind, MemberSet, Quorum};
use leasehold_quorum::Config;

use super::connection::Connection;
use super::link::Link;
use super::opening::Entrance;
use crate::connection::Tls;
use crate::protocol::Codec;
use crate::url::{Login, RedisUrl};

/// What a [`Driver`](super::Driver) connects to, and for which client.
#[derive(Clone)]
pub struct DriverConfig {
    /// The URLs of the members, as for [`RedisMember::new`](crate::RedisMember::new).
    pub urls: Vec<String>,
    /// The longest TTL of any lease.
    pub max_ttl: Duration,
    /// The greatest difference between the clocks of members.
    pub clock_tolerance: Duration,
    /// Whether only trusted members have a vote.
    pub enforced: bool,
    /// For how long a release leaves a contended lock free for clients of other libraries, from time to
    /// time. Zero: never.
    pub foreign_gap: Duration,
    /// The client.
    pub client: Arc<ClientInfo>,
    /// The clock and the random numbers.
    pub ambient: Ambient,
}

/// What a driver is made of.
pub(super) struct Parts {
    pub(super) engine: Config,
    pub(super) links: Vec<Link>,
    pub(super) connections: Vec<Connection>,
    pub(super) clock: Arc<dyn Clock>,
}

impl DriverConfig {
    /// Checks the URLs, and sorts the members by their ids, as the engine numbers them.
    pub(super) fn into_parts(self) -> Result<Parts, Error> {
        let mut urls = self
            .urls
            .iter()
            .map(|url| RedisUrl::parse(url))
            .collect::<Result<Vec<_>, _>>()?;
        check(&urls)?;
        urls.sort_by(|one, other| one.id.cmp(&other.id));
        let ids = urls.iter().map(|url| url.id.clone());
        let set = MemberSet::new(ids, self.max_ttl, self.clock_tolerance);
        let links = urls.iter().map(|url| {
            let codec = Codec {
                prefix: url.prefix.clone(),
                user: Login::shown(url.login.as_ref()).to_owned(),
                client: self.client.id,
                foreign_gap: self.foreign_gap,
            };
            Link::new(codec, Arc::clone(&self.client))
        });
        let links = links.collect();
        let connection = |(member, url): (usize, RedisUrl)| {
            let entrance = Entrance {
                tls: Arc::new(Tls::new(url.ca.as_deref())?),
                url,
                client: Arc::clone(&self.client),
                previous: None,
                complained: false,
            };
            Ok(Connection {
                member,
                entrance,
                ambient: self.ambient.clone(),
            })
        };
        let connections = urls.into_iter().enumerate().map(connection);
        Ok(Parts {
            connections: connections.collect::<Result<_, Error>>()?,
            links,
            clock: Arc::clone(&self.ambient.clock),
            engine: Config {
                set,
                enforced: self.enforced,
                entropy: self.ambient.entropy,
            },
        })
    }
}

fn check(urls: &[RedisUrl]) -> Result<(), Error> {
    let refuse = |rule: String| Err(Error::new(ErrorKind::InvalidInput, rule));
    if urls.is_empty() {
        return refuse("no member; give the URL of at least one server".into());
    }
    if urls.len() > Quorum::MEMBERS_MAX {
        return refuse(format!("more than {} members", Quorum::MEMBERS_MAX));
    }
    for (at, url) in urls.iter().enumerate() {
        let is_twin =
            |other: &&RedisUrl| other.id == url.id || other.address.same_server(&url.address);
        if let Some(twin) = urls[..at].iter().find(is_twin) {
            return refuse(format!(
                "{} is given twice (also as {}); list each server and each id once",
                url.described(),
                twin.described(),
            ));
        }
    }
    Ok(())
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
