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
use std::time::Duration;

use leasehold::Error;
use leasehold::env::Env;
use leasehold::store::{LeaseTerms, MemberSet};

use crate::RedisMember;
use crate::admin::Server;

/// One Redis server, or a quorum of several, as a store.
///
/// Each client has connections of its own, which its first lock opens.
#[derive(Clone)]
pub struct RedisStore {
    urls: Vec<String>,
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
            enforced: urls.len() >= 3,
            read_only: false,
            set: MemberSet::new(ids, LeaseTerms::QUORUM_TTL_MAX, Self::CLOCK_TOLERANCE),
            limits: Limits::default(),
            members,
            urls,
            env,
        })
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
