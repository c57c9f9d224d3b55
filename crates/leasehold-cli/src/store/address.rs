use leasehold_redis::RedisStore;

use crate::config::{Addresses, Limits};
use crate::output::failure::Failure;
use crate::store::files::is_file;

/// The kind of store that addresses name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StoreAddress<'a> {
    /// This address of a folder.
    Folder(&'a str),
    /// These addresses of servers, one or more.
    Servers(&'a [String]),
}

impl<'a> StoreAddress<'a> {
    pub(crate) fn of(addresses: &'a Addresses) -> Result<Self, Failure> {
        let urls = addresses.urls.as_slice();
        if let ([only], Some(limit)) = (urls, addresses.limits.any()) {
            let what = if is_file(only) {
                "a file store has one clock and no leases"
            } else {
                "one server has one clock"
            };
            return addresses.blame(Err(Failure::usage(format!(
                "{limit} applies to a quorum of several servers, but {what}; remove it"
            ))));
        }
        match urls {
            [url] if is_file(url) => Ok(Self::Folder(url)),
            urls if urls.iter().any(|url| is_file(url)) => addresses.blame(Err(Failure::usage(
                "a file store cannot be part of a quorum; use it alone, or list servers only",
            ))),
            urls => Ok(Self::Servers(urls)),
        }
    }
}

impl Addresses {
    /// Adds the source of the addresses to a failure.
    pub(crate) fn blame<T>(&self, outcome: Result<T, impl Into<Failure>>) -> Result<T, Failure> {
        outcome.map_err(|failure| {
            let failure = failure.into();
            Failure::new(failure.code, format!("{}: {failure}", self.source))
        })
    }
}

/// Whether the address has a scheme of a server.
pub(super) fn is_server(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    matches!(
        scheme,
        Some("redis" | "rediss" | "valkey" | "valkeys" | "unix")
    )
}

/// The servers at `urls`, which are a quorum within `limits` if they are several.
pub(crate) fn servers(urls: &[String], limits: Limits) -> Result<RedisStore, Failure> {
    within(RedisStore::new(urls)?, limits)
}

pub(super) fn within(mut store: RedisStore, limits: Limits) -> Result<RedisStore, Failure> {
    if let Some(max_ttl) = limits.max_ttl {
        store = store.max_ttl(max_ttl);
    }
    if let Some(tolerance) = limits.clock_tolerance {
        store = store.clock_tolerance(tolerance);
    }
    Ok(store.checked()?)
}
