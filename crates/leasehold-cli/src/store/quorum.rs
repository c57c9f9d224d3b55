//! A quorum of servers, as its operator sees it.

use std::time::Duration;

use leasehold::Error;
use leasehold::member::{MemberId, MemberRecord, MemberSet, MemberStatus};
use leasehold_redis::{RedisMember, RedisStore};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::output::failure::Failure;
use crate::store::address_text::without_login;

/// The servers of `leasehold init` and `leasehold members`, each with a record of its quorum.
pub(crate) struct Quorum {
    store: RedisStore,
    urls: Vec<String>,
}

impl Quorum {
    /// The smallest number of servers with a majority that is less than all of them.
    pub(crate) const LEAST: usize = 3;

    pub(super) fn new(store: RedisStore, urls: Vec<String>) -> Self {
        Self { store, urls }
    }

    /// Returns the quorum of the servers at `urls`.
    pub(crate) fn at(urls: &[String]) -> Result<Self, Failure> {
        Ok(Self::new(RedisStore::new(urls)?, urls.to_vec()))
    }

    /// The same quorum with the limits to initialize it with. `None` for the default.
    pub(crate) fn within(
        &self,
        max_ttl: Option<Duration>,
        clock_tolerance: Option<Duration>,
    ) -> Result<Self, Failure> {
        let mut store = RedisStore::new(&self.urls)?;
        if let Some(max_ttl) = max_ttl {
            store = store.max_ttl(max_ttl);
        }
        if let Some(tolerance) = clock_tolerance {
            store = store.clock_tolerance(tolerance);
        }
        Ok(Self::new(store.checked()?, self.urls.clone()))
    }

    /// Returns the addresses of the servers.
    pub(crate) fn urls(&self) -> &[String] {
        &self.urls
    }

    /// Returns the ids of the servers, in the order of their addresses.
    pub(crate) fn ids(&self) -> Vec<MemberId> {
        self.store.member_ids().cloned().collect()
    }

    /// Returns the id of the server at `url`.
    pub(crate) fn id_at(url: &str) -> Result<MemberId, Failure> {
        Ok(RedisMember::new(url)?.id().clone())
    }

    /// Returns the servers, with the limits that most of these records state.
    pub(crate) fn stated_set(&self, records: &[&MemberRecord]) -> MemberSet {
        self.store.stated_set(records.iter().copied())
    }

    /// Asks the server in this index for its status. Writes nothing.
    pub(crate) async fn status(&self, index: usize) -> Result<MemberStatus, Error> {
        self.store.members()[index].status().await
    }

    /// Initializes the quorum. Returns `false` if there is nothing to do. With `is_new`, the operator states that the
    /// servers were new before the first lock.
    pub(crate) async fn init(&self, is_new: bool) -> Result<bool, Error> {
        match is_new {
            true => self.store.init_new().await,
            false => self.store.init().await,
        }
    }

    /// Makes this quorum the successor of the one at `old`. The two differ by one server. Returns the new quorum.
    pub(crate) async fn succeed(&self, old: &[String]) -> Result<MemberSet, Error> {
        self.store.succeed(&RedisStore::new(old)?).await
    }

    /// Checks what [`succeed`](Self::succeed) checks, and writes nothing.
    pub(crate) async fn check_succession(&self, old: &[String]) -> Result<MemberSet, Error> {
        self.store.check_succession(&RedisStore::new(old)?).await
    }

    /// Completes the move of a server from the address `former` to the one in this quorum. With `is_gone`, the operator
    /// states that the former server is stopped for good.
    pub(crate) async fn replace(&self, former: &str, is_gone: bool) -> Result<(), Error> {
        let former = RedisMember::new(former)?;
        self.store.replace(&former, is_gone).await
    }

    /// Gives a server that lost its data a new record. Returns `false` if it has one.
    pub(crate) async fn readmit(&self, id: &MemberId) -> Result<bool, Error> {
        self.store.readmit(id).await
    }

    /// Returns the address of a server at `url` that takes the id of a member.
    pub(crate) fn with_id(url: &str, id: &MemberId) -> Result<String, Failure> {
        let new = RedisMember::new(url)?;
        if new.id() == id {
            return Ok(url.to_owned());
        }
        let (_, query) = url.split_once('?').unwrap_or((url, ""));
        if query.split('&').any(|pair| pair.starts_with("id=")) {
            return Err(Failure::usage(format!(
                "{} has the id {}, and it replaces {id}; leave the id out",
                without_login(url),
                new.id()
            )));
        }
        let joint = if url.contains('?') { '&' } else { '?' };
        let id = utf8_percent_encode(id.as_str(), SPECIAL);
        Ok(format!("{url}{joint}id={id}"))
    }
}

/// What has a meaning in the query of a URL, or in a list of URLs.
const SPECIAL: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'#')
    .add(b'%')
    .add(b'&')
    .add(b'+')
    .add(b',');
