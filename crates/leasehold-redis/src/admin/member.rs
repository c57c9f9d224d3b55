use std::fmt;

use leasehold::env::Env;
use leasehold::look::{BreakRecord, BrokenLease, Holder, LockListing, Pattern, Waiter};
use leasehold::member::{DataGeneration, MemberId, MemberRecordEdit, MemberStatus};
use leasehold::{Error, Key};
use leasehold_quorum::{Reply, Request};

use super::server::{Server, Servers};
use crate::url::{RedisUrl, parse_all};

/// One Redis or Valkey server, for its status, its locks, and the changes that operators make.
///
/// To take locks, use [`RedisStore`](crate::RedisStore). The first method call opens the connection. Each
/// method fails if the server refuses, or does not answer within 2 s (5 s for its status and record), and names the server in
/// the error. If you drop the future of a method that changes something, the server may or may not have made the change.
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> Result<(), leasehold::Error> {
/// use leasehold::look::Pattern;
/// use leasehold_redis::RedisMember;
///
/// let server = RedisMember::new("redis://10.0.0.1")?;
/// let invoices = Pattern::new("invoices/*")?;
/// for lock in server.list_locks(&invoices, 100).await?.locks {
///     println!("{}: {:?}", lock.key, lock.holders);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RedisMember {
    pub(crate) server: Server,
}

impl RedisMember {
    /// Returns the server at `url`: `redis://[user:password@]host[:port][/database]`, `rediss://` for TLS,
    /// or `unix://[user:password@]/path[?db=N]`. Special characters are percent-encoded.
    ///
    /// Parameters follow a `?` and are joined by `&`. `id=NAME` is the id of the member (default:
    /// `host:port`, or the path of the socket). `prefix=P` comes before the name of every lock at the
    /// server (default: nothing, as in most libraries).
    ///
    /// Four parameters name files, which are read again for each connection. `password_file=FILE` has the password;
    /// `user@` before the host names the user. For `rediss://`, `ca=FILE` has the authorities of the server in PEM, in
    /// place of those of the machine, and `cert=FILE` and `key=FILE` have the certificate of the client and its key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](leasehold::ErrorKind::InvalidInput), naming the value without its credentials,
    /// and the rule. Nothing is sent, but the files are read.
    pub fn new(url: impl AsRef<str>) -> Result<Self, Error> {
        Self::with_env(url, Env::default())
    }

    /// Like [`new`](Self::new), with another clock and other random numbers, for tests.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_env(url: impl AsRef<str>, env: Env) -> Result<Self, Error> {
        let url = RedisUrl::parse(url.as_ref())?;
        url.check_files()?;
        Ok(Self {
            server: Server::new(url, env),
        })
    }

    /// Returns the members at `urls`, which share one thread.
    pub(crate) fn sharing_thread(urls: &[String], env: &Env) -> Result<Vec<Self>, Error> {
        let urls = parse_all(urls)?;
        for url in &urls {
            url.check_files()?;
        }
        Ok(Self::at(urls, env))
    }

    /// Returns the members at these addresses, which share one thread. Reads no files.
    pub(crate) fn at(urls: Vec<RedisUrl>, env: &Env) -> Vec<Self> {
        let servers = Servers::start(urls, env.clone()).into_iter();
        servers.map(|server| Self { server }).collect()
    }

    /// Returns the id of the member.
    pub fn id(&self) -> &MemberId {
        self.server.id()
    }

    /// Returns the status of the server.
    ///
    /// # Errors
    ///
    /// If the server does not answer or the user lacks a right.
    pub async fn status(&self) -> Result<MemberStatus, Error> {
        match self.server.request(Request::Status).await? {
            Reply::Status(status) => Ok(*status),
            _ => Err(self.unexpected()),
        }
    }

    /// Writes the member record if it has the expected epoch. Returns whether it did.
    ///
    /// # Errors
    ///
    /// If the server does not answer or the user lacks a right.
    pub async fn write_member_record(&self, edit: &MemberRecordEdit) -> Result<bool, Error> {
        let edit = Box::new(edit.clone());
        match self
            .server
            .request(Request::WriteMemberRecord(edit))
            .await?
        {
            Reply::Recorded(written) => Ok(written),
            _ => Err(self.unexpected()),
        }
    }

    /// Notes in the member record which data generations of other members a client observed.
    ///
    /// # Errors
    ///
    /// If the server does not answer or the user lacks a right.
    pub async fn observe(&self, seen: &[(MemberId, DataGeneration)]) -> Result<(), Error> {
        let request = Request::RecordObservation(seen.to_vec());
        self.server.request(request).await.map(drop)
    }

    /// Returns the holders of a lock.
    ///
    /// # Errors
    ///
    /// If the server does not answer or the user lacks a right.
    pub async fn holders(&self, key: &Key) -> Result<Vec<Holder>, Error> {
        self.server.holders(key).await
    }

    /// Returns the waiters for a lock, in the order of their tickets.
    ///
    /// # Errors
    ///
    /// If the server does not answer or the user lacks a right.
    pub async fn waiters(&self, key: &Key) -> Result<Vec<Waiter>, Error> {
        self.server.waiters(key).await
    }

    /// Returns the first locks by name that match, with their holders.
    ///
    /// # Errors
    ///
    /// If the server does not answer or the user lacks a right.
    pub async fn list_locks(&self, pattern: &Pattern, limit: usize) -> Result<LockListing, Error> {
        self.server.list_locks(pattern, limit).await
    }

    /// Breaks the lease of `record.owner` on this server.
    ///
    /// # Errors
    ///
    /// If the server does not answer or the user lacks a right.
    pub async fn break_lease(&self, key: &Key, record: &BreakRecord) -> Result<BrokenLease, Error> {
        self.server.break_lease(key, record).await
    }

    /// Returns the last break of a lock.
    ///
    /// # Errors
    ///
    /// If the server does not answer or the user lacks a right.
    pub async fn last_break(&self, key: &Key) -> Result<Option<BreakRecord>, Error> {
        self.server.last_break(key).await
    }

    fn unexpected(&self) -> Error {
        self.server
            .named(crate::codec::invalid_response("a request"))
    }
}

/// The address of the server, without its password.
impl fmt::Display for RedisMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redis {}", self.server.url().room())
    }
}

impl fmt::Debug for RedisMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisMember")
            .field("server", &self.to_string())
            .finish_non_exhaustive()
    }
}
