mod as_admin;
mod as_inspection;
mod as_member;
mod as_records;
mod as_store;

use std::fmt;
use std::sync::Arc;

use leasehold::ambient::Ambient;
use leasehold::{Error, ErrorKind, Key, Member, Quorum, Store};

use crate::connection::{Connector, Link, Tls};
use crate::url::RedisUrl;
use crate::wire::Records;

/// One Redis or Valkey server as a store of its own, or as a member of a quorum.
///
/// Lazy: nothing is sent before the first lock, and the connection is opened again whenever it
/// broke. Who waits is served in turn, and told by the server. Leases are measured by the server.
///
/// On its own it is for efficiency: a server that fails over or loses its data forgets its locks.
/// Take a [`Quorum`] where the lock must hold, and hand the fence to what the lock protects.
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> Result<(), leasehold::Error> {
/// use leasehold::{Client, Quorum};
/// use leasehold_redis::RedisMember;
///
/// let one = Client::new(RedisMember::new("redis://10.0.0.1")?);
/// let guard = one.lock("deploy").acquire().await?;
/// guard.release().await?;
///
/// let urls = ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"];
/// let three = Client::new(Quorum::new(RedisMember::all(urls)?)?);
/// # Ok(()) }
/// ```
pub struct RedisMember {
    pub(crate) connector: Arc<Connector>,
    pub(crate) ambient: Ambient,
}

impl RedisMember {
    /// The server at `url`: `redis://[user:password@]host[:port][/database]`, `rediss://` for TLS,
    /// or `unix://[user:password@]/path[?db=N]`; parts with special characters percent-encoded.
    ///
    /// Behind a `?`, joined by `&`: `id=NAME` names the member in its set (default `host:port`, or
    /// the socket's path); `prefix=P` puts `P` in front of every lock's name at the server (default
    /// nothing, as most libraries do); `ca=FILE` trusts the certificates of that PEM file instead
    /// of the machine's.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`], naming the value without its credentials, and the rule. Nothing
    /// is sent, but the file of `ca` is read.
    pub fn new(url: impl AsRef<str>) -> Result<Self, Error> {
        Self::with_ambient(url, Ambient::default())
    }

    /// [`new`](Self::new), with time and chance from `ambient`: for tests.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_ambient(url: impl AsRef<str>, ambient: Ambient) -> Result<Self, Error> {
        let url = RedisUrl::parse(url.as_ref())?;
        let tls = Tls::new(url.ca.as_deref())?;
        let connector = Connector::new(url, tls, Arc::clone(&ambient.clock));
        Ok(Self {
            connector: Arc::new(connector),
            ambient,
        })
    }

    /// The members of a set, ready for [`Quorum::new`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`]: as [`new`](Self::new), and if one server or one id is given
    /// twice, or more than [`Quorum::MEMBERS_MAX`] of them.
    pub fn all<U: AsRef<str>>(
        urls: impl IntoIterator<Item = U>,
    ) -> Result<Vec<Arc<dyn Member>>, Error> {
        let mut members: Vec<Self> = Vec::new();
        for url in urls {
            let member = Self::new(url)?;
            if let Some(twin) = members.iter().find(|other| other.clashes_with(&member)) {
                let rule = format!(
                    "{} is given twice (also as {}); list each server and each id once",
                    member.connector.url().described(),
                    twin.connector.url().described(),
                );
                return Err(Error::new(ErrorKind::InvalidInput, rule));
            }
            members.push(member);
            if members.len() > Quorum::MEMBERS_MAX {
                let rule = format!("more than {} members", Quorum::MEMBERS_MAX);
                return Err(Error::new(ErrorKind::InvalidInput, rule));
            }
        }
        Ok(members.into_iter().map(Self::into).collect())
    }

    fn clashes_with(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.connector.url(), other.connector.url());
        mine.id == theirs.id || mine.address.same_server(&theirs.address)
    }

    pub(crate) fn records_of<'k>(&self, key: &'k Key) -> Records<'k> {
        Records::of(&self.connector.url().prefix, key)
    }

    pub(crate) async fn link(&self) -> Result<Arc<Link>, Error> {
        self.connector.link().await
    }

    pub(crate) fn named(&self, error: Error) -> Error {
        error.with_store(self.id().as_str())
    }
}

impl fmt::Debug for RedisMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisMember")
            .field("connector", &self.connector)
            .finish_non_exhaustive()
    }
}

impl From<RedisMember> for Arc<dyn Member> {
    fn from(member: RedisMember) -> Self {
        Arc::new(member)
    }
}

impl From<RedisMember> for Arc<dyn Store> {
    /// The server as a quorum of one: with limits on its requests, and with attempts that were not
    /// answered followed up.
    fn from(member: RedisMember) -> Self {
        Self::from(Quorum::of_one(member.into()))
    }
}
