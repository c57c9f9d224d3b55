//! Redis servers as a store: the engine handles locks, and the members themselves handle everything else.

mod as_store;
mod errors;
mod health;
mod records;
mod session;
mod settings;
mod setup;
mod views;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold::Error;
use leasehold::env::Env;
use leasehold::member::MemberSet;
use leasehold::store::LeaseTerms;
use leasehold_credentials::{Login, Password, TlsSource, rustls};

use crate::RedisMember;
use crate::admin::Server;
use crate::url::RedisUrl;

/// One Redis server, or a quorum of several, as a store.
///
/// Each client has connections of its own, which its first lock opens.
#[derive(Clone)]
pub struct RedisStore {
    env: Env,
    /// The members, for tools and for clients without locks. They have connections of their own.
    members: Vec<RedisMember>,
    /// The members' ids, and the limits of a quorum that this store initializes.
    set: MemberSet,
    /// The limits that the caller stated.
    limits: Limits,
    enforced: bool,
    read_only: bool,
}

/// The limits that a new quorum gets, if they are not the defaults.
#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    max_ttl: Option<Duration>,
    clock_tolerance: Option<Duration>,
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
            enforced: members.len() >= 3,
            read_only: false,
            set: MemberSet::new(ids, LeaseTerms::QUORUM_TTL_MAX, Self::CLOCK_TOLERANCE),
            limits: Limits::default(),
            members,
            env,
        })
    }

    /// The same store, which logs in to all servers as `user` with this password, in place of the logins of the URLs. An empty
    /// user is the default user. [`Password::from_fn`] calls a function at each login, for example for the token of a cloud
    /// provider.
    ///
    /// # Examples
    ///
    /// ```
    /// use leasehold_redis::{Password, RedisStore};
    ///
    /// let store = RedisStore::new(["rediss://cache.example"])?;
    /// let store = store.login("locks", Password::from_fn(|| async { Ok("a token".to_owned()) }));
    /// # Ok::<(), leasehold::Error>(())
    /// ```
    #[must_use]
    pub fn login(self, user: impl Into<String>, password: Password) -> Self {
        let login = Login {
            user: user.into(),
            password,
        };
        let login_of = |mut url: RedisUrl| {
            url.login = Some(login.clone());
            url
        };
        let urls = self.urls().map(login_of).collect();
        self.at(urls)
    }

    /// The same store, which encrypts with this configuration in place of the files that the URLs name.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](leasehold::ErrorKind::InvalidInput) if a URL is not `rediss://`.
    pub fn tls_config(self, config: Arc<rustls::ClientConfig>) -> Result<Self, Error> {
        let encrypted = |mut url: RedisUrl| {
            TlsSource::replace(&mut url.tls, Arc::clone(&config), "rediss://")?;
            Ok(url)
        };
        let urls = self.urls().map(encrypted).collect::<Result<_, Error>>()?;
        Ok(self.at(urls))
    }

    /// The same store, which reaches its members in this way.
    fn at(self, urls: Vec<RedisUrl>) -> Self {
        Self {
            members: RedisMember::at(urls, &self.env),
            ..self
        }
    }

    fn urls(&self) -> impl Iterator<Item = RedisUrl> {
        self.servers().map(|server| server.url().clone())
    }

    fn servers(&self) -> impl Iterator<Item = &Server> {
        self.members.iter().map(|member| &member.server)
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
