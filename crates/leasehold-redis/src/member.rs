use std::fmt;
use std::sync::Arc;

use leasehold::ambient::Ambient;
use leasehold::{
    Attempt, BoxFuture, Claim, Error, ErrorKind, Exclusion, Expiry, Fence, Fencing, Guarantees,
    Health, Held, Holder, Key, LeaseTerms, Member, MemberId, Order, Quorum, Release, Renewal, Seal,
    Sharing, Store, Waiting,
};

use crate::attempt::{self, garbled};
use crate::connection::{Answer, Command, Connector, Link, Rights, Tls, Unanswered, read_time};
use crate::url::RedisUrl;
use crate::wire::Records;
use crate::{lease, look};

/// One Redis or Valkey server as a store of its own, or as a member of a quorum.
///
/// Lazy: nothing is sent before the first lock, and the connection is opened again whenever it
/// broke. Waiting is random polling, in no order. Leases are measured by the server.
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
    connector: Arc<Connector>,
    ambient: Ambient,
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
                    "{} is given twice (also as {}): each server, and each id, may be in the set once",
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

    fn records(&self, key: &Key) -> Records {
        Records::of(&self.connector.url().prefix, key)
    }

    async fn link(&self) -> Result<Arc<Link>, Error> {
        self.connector.link().await
    }

    fn named(&self, error: Error) -> Error {
        error.with_store(self.id().as_str())
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt, Error> {
        let records = self.records(&claim.key);
        let link = self.link().await?;
        attempt::acquire(&link, &records, claim, self.ambient.clock.now()).await
    }

    async fn try_renew(&self, leases: &[Held]) -> Result<Vec<Renewal>, Error> {
        let link = self.link().await?;
        let prefix = &self.connector.url().prefix;
        Ok(lease::renew(&link, prefix, leases, self.ambient.clock.now()).await)
    }

    async fn try_release(&self, claim: &Claim) -> Result<Release, Error> {
        let link = self.link().await?;
        lease::release(&link, &self.records(&claim.key), claim).await
    }

    async fn try_seal(&self, claim: &Claim, fence: Fence) -> Result<Seal, Error> {
        let link = self.link().await?;
        lease::seal(&link, &self.records(&claim.key), claim, fence).await
    }

    async fn try_holders(&self, key: &Key) -> Result<Vec<Holder>, Error> {
        let link = self.link().await?;
        look::holders(&link, &self.records(key)).await
    }

    async fn try_list(&self, prefix: &str, limit: usize) -> Result<Vec<Key>, Error> {
        let link = self.link().await?;
        look::list(&link, &self.connector.url().prefix, prefix, limit).await
    }

    async fn try_health(&self) -> Result<Health, Error> {
        let link = self.link().await?;
        // Behind a relay that acknowledges and delivers nothing, no timeout of TCP ends it.
        let unanswered = Unanswered::on(&link);
        let answers = link.exchange(vec![Command::new("TIME")]).await?;
        unanswered.answered();
        match answers.as_slice() {
            [Answer::Refused(refusal)] => Err(refusal.to_error(link.user(), Rights("+time"))),
            [time] => read_time(time)
                .map(Health::at)
                .ok_or_else(|| garbled("TIME")),
            _ => Err(garbled("TIME")),
        }
    }
}

impl Store for RedisMember {
    fn describe(&self) -> String {
        format!("Redis {}", self.id())
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees::new(
            Exclusion::OneServer,
            Fencing::CounterThenClock,
            Expiry::Lease,
            Waiting::Polling,
            Order::Unordered,
            Sharing::ReadersPreferred,
        )
    }

    fn terms(&self) -> LeaseTerms {
        LeaseTerms::single()
    }

    fn acquire<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Attempt, Error>> {
        Box::pin(async {
            self.try_acquire(claim)
                .await
                .map_err(|error| self.named(error))
        })
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<Renewal>> {
        Box::pin(async {
            let renewed = self.try_renew(leases).await;
            let mut answers =
                renewed.unwrap_or_else(|error| vec![Renewal::Unknown(error); leases.len()]);
            for answer in &mut answers {
                if let Renewal::Unknown(error) = answer {
                    *error = self.named(error.clone());
                }
            }
            answers
        })
    }

    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Release, Error>> {
        Box::pin(async {
            self.try_release(claim)
                .await
                .map_err(|error| self.named(error))
        })
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        // A release is over when it is answered.
        Box::pin(std::future::ready(()))
    }

    fn wait<'a>(&'a self, _claim: &'a Claim) -> BoxFuture<'a, ()> {
        Box::pin(self.ambient.poll_pause())
    }

    fn holders<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Holder>, Error>> {
        Box::pin(async {
            self.try_holders(key)
                .await
                .map_err(|error| self.named(error))
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Key>, Error>> {
        Box::pin(async move {
            let listed = self.try_list(prefix, limit).await;
            listed.map_err(|error| self.named(error))
        })
    }
}

impl Member for RedisMember {
    fn id(&self) -> &MemberId {
        &self.connector.url().id
    }

    fn seal<'a>(&'a self, claim: &'a Claim, fence: Fence) -> BoxFuture<'a, Result<Seal, Error>> {
        Box::pin(async move {
            let sealed = self.try_seal(claim, fence).await;
            sealed.map_err(|error| self.named(error))
        })
    }

    fn health(&self) -> BoxFuture<'_, Result<Health, Error>> {
        Box::pin(async { self.try_health().await.map_err(|error| self.named(error)) })
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
