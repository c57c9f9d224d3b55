//! Redis servers: one, or a quorum of several.

mod doctor;

use std::time::Duration;

use leasehold::Error;
use leasehold::store::{BoxFuture, MemberId, MemberRecord, MemberSet, MemberStatus};
use leasehold_redis::{RedisMember, RedisStore};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::config::Addresses;
use crate::output::failure::Failure;
use crate::output::report::Report;
use crate::runtime::runtime;
use crate::store::address::without_login;
use crate::store::backend::{Backend, Opened, Quorum};

/// The servers at these addresses.
#[derive(Debug)]
pub(super) struct RedisServers<'a>(pub(super) &'a Addresses);

impl RedisServers<'_> {
    fn store(&self) -> Result<RedisStore, Failure> {
        let urls = &self.0.urls;
        let store = RedisStore::new(urls).map_err(|error| match urls.as_slice() {
            [only] if !is_server(only) => {
                Failure::usage(format!("{error}, or file:///folder for files"))
            }
            _ => error.into(),
        });
        self.0.blame(store)
    }
}

impl Backend for RedisServers<'_> {
    fn open(&self) -> Result<Opened, Failure> {
        let store = self.store()?;
        Ok(Opened {
            members: store.member_ids().map(ToString::to_string).collect(),
            store: store.into(),
            descriptors: None,
        })
    }

    fn examine(&self) -> Result<Report, Failure> {
        // For its name only; sends nothing.
        let store = self.store()?.to_string();
        runtime()?.block_on(doctor::report(self.0, store))
    }

    fn quorum(&self) -> Result<Box<dyn Quorum>, Failure> {
        Ok(Box::new(RedisQuorum {
            store: self.store()?,
            urls: self.0.urls.clone(),
        }))
    }
}

/// A quorum of servers, for its operator.
struct RedisQuorum {
    store: RedisStore,
    urls: Vec<String>,
}

impl Quorum for RedisQuorum {
    fn urls(&self) -> &[String] {
        &self.urls
    }

    fn ids(&self) -> Vec<MemberId> {
        self.store.member_ids().cloned().collect()
    }

    fn id_at(&self, url: &str) -> Result<MemberId, Failure> {
        Ok(RedisMember::new(url)?.id().clone())
    }

    fn with_id(&self, url: &str, id: &MemberId) -> Result<String, Failure> {
        with_id(url, id)
    }

    fn at(&self, urls: &[String]) -> Result<Box<dyn Quorum>, Failure> {
        Ok(Box::new(Self {
            store: RedisStore::new(urls)?,
            urls: urls.to_vec(),
        }))
    }

    fn within(
        &self,
        max_ttl: Option<Duration>,
        clock_tolerance: Option<Duration>,
    ) -> Result<Box<dyn Quorum>, Failure> {
        let mut store = RedisStore::new(&self.urls)?;
        if let Some(max_ttl) = max_ttl {
            store = store.max_ttl(max_ttl);
        }
        if let Some(tolerance) = clock_tolerance {
            store = store.clock_tolerance(tolerance);
        }
        Ok(Box::new(Self {
            store: store.checked()?,
            urls: self.urls.clone(),
        }))
    }

    fn stated_set(&self, records: &[&MemberRecord]) -> MemberSet {
        self.store.stated_set(records.iter().copied())
    }

    fn status(&self, place: usize) -> BoxFuture<'_, Result<MemberStatus, Error>> {
        Box::pin(self.store.members()[place].status())
    }

    fn init(&self, is_new: bool) -> BoxFuture<'_, Result<bool, Error>> {
        match is_new {
            true => Box::pin(self.store.init_new()),
            false => Box::pin(self.store.init()),
        }
    }

    fn succeed<'a>(&'a self, old: &'a [String]) -> BoxFuture<'a, Result<MemberSet, Error>> {
        Box::pin(async move {
            let old = RedisStore::new(old)?;
            self.store.succeed(&old).await
        })
    }

    fn check_succession<'a>(
        &'a self,
        old: &'a [String],
    ) -> BoxFuture<'a, Result<MemberSet, Error>> {
        Box::pin(async move {
            let old = RedisStore::new(old)?;
            self.store.check_succession(&old).await
        })
    }

    fn replace<'a>(&'a self, former: &'a str, is_gone: bool) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let former = RedisMember::new(former)?;
            self.store.replace(&former, is_gone).await
        })
    }

    fn readmit<'a>(&'a self, id: &'a MemberId) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(self.store.readmit(id))
    }
}

/// Whether the address has a scheme of a server.
fn is_server(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    matches!(
        scheme,
        Some("redis" | "rediss" | "valkey" | "valkeys" | "unix")
    )
}

/// What has a meaning in the query of a URL, or in a list of URLs.
const SPECIAL: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'#')
    .add(b'%')
    .add(b'&')
    .add(b'+')
    .add(b',');

/// Returns the URL with the id of the member that it replaces.
fn with_id(url: &str, id: &MemberId) -> Result<String, Failure> {
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
