//! Which store an address names. A further kind of store is one more case here.

use crate::config::{Addresses, Choice};
use crate::output::failure::Failure;
use crate::store::backend::Backend;
use crate::store::files::{LockFiles, is_file};

/// Returns the store that was chosen.
pub(crate) fn backend(choice: &Choice) -> Result<Box<dyn Backend + '_>, Failure> {
    let addresses = match choice {
        Choice::Local => return Ok(Box::new(LockFiles::Local)),
        Choice::Unsaid => return Ok(Box::new(LockFiles::Unsaid)),
        Choice::Stores(addresses) => addresses,
    };
    let urls = addresses.urls.as_slice();
    match urls {
        [url] if is_file(url) => Ok(Box::new(LockFiles::Folder(url, addresses))),
        urls if urls.iter().any(|url| is_file(url)) => addresses.blame(Err(Failure::usage(
            "a file store cannot be part of a quorum; use it alone, or list servers only",
        ))),
        _ => servers(addresses),
    }
}

/// Splits a list of addresses at its commas. An ensemble of ZooKeeper, or a PostgreSQL server and its standbys, is one
/// address.
pub(crate) fn split(list: &str) -> Vec<String> {
    if has_several_hosts(list.trim_start()) {
        return vec![list.trim().to_owned()];
    }
    list.split(',').map(|url| url.trim().to_owned()).collect()
}

fn has_several_hosts(address: &str) -> bool {
    let scheme = address.split_once("://").map(|(scheme, _)| scheme);
    is_zookeeper(address) || matches!(scheme, Some("postgres" | "postgresql"))
}

fn is_zookeeper(address: &str) -> bool {
    let scheme = address.split_once("://").map(|(scheme, _)| scheme);
    matches!(scheme, Some("zk" | "zks" | "zookeeper"))
}

/// Returns the servers at the addresses, by the scheme of the first one. Addresses without a scheme are those of Redis.
fn servers(addresses: &Addresses) -> Result<Box<dyn Backend + '_>, Failure> {
    let first = addresses.urls.first().map_or("", String::as_str);
    if first.starts_with(['/', '.', '~']) {
        return addresses.blame(Err(Failure::usage(format!(
            "{first:?} is a path; a folder for lock files is given as file:///absolute/path"
        ))));
    }
    if addresses.urls.len() > 1 && addresses.urls.iter().any(|url| is_zookeeper(url)) {
        return addresses.blame(Err(Failure::usage(
            "give all servers of a ZooKeeper ensemble in one address, such as zk://a,b,c/locks",
        )));
    }
    match first.split_once("://").map_or("", |(scheme, _)| scheme) {
        #[cfg(feature = "etcd")]
        scheme if crate::store::etcd::SCHEMES.contains(&scheme) => {
            Ok(Box::new(crate::store::etcd::EtcdServers(addresses)))
        }
        #[cfg(not(feature = "etcd"))]
        "etcd" | "etcds" => addresses.blame(Err(lacks("etcd"))),
        #[cfg(feature = "zookeeper")]
        "zk" | "zks" | "zookeeper" => Ok(Box::new(crate::store::zookeeper::Ensemble(
            first, addresses,
        ))),
        #[cfg(not(feature = "zookeeper"))]
        "zk" | "zks" | "zookeeper" => addresses.blame(Err(lacks("zookeeper"))),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => {
            Ok(Box::new(crate::store::postgres::PostgresServer(addresses)))
        }
        #[cfg(not(feature = "postgres"))]
        "postgres" | "postgresql" => addresses.blame(Err(lacks("postgres"))),
        #[cfg(feature = "redis")]
        _ => Ok(Box::new(crate::store::redis::RedisServers(addresses))),
        #[cfg(not(feature = "redis"))]
        _ => addresses.blame(Err(lacks("redis"))),
    }
}

/// The failure of a build without the store behind a feature.
#[cfg(not(all(
    feature = "etcd",
    feature = "postgres",
    feature = "redis",
    feature = "zookeeper"
)))]
fn lacks(feature: &str) -> Failure {
    Failure::usage(format!(
        "this build of leasehold has no store for this address; build it with --features {feature}"
    ))
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

/// The address with `***` in place of user and password.
#[cfg(any(test, feature = "redis"))]
pub(crate) fn without_login(url: &str) -> String {
    let (scheme, rest) = url
        .split_once("://")
        .map_or(("", url), |(s, rest)| (s, rest));
    let (place, query) = rest
        .split_once('?')
        .map_or((rest, None), |(p, q)| (p, Some(q)));
    let Some((_, place)) = place.rsplit_once('@') else {
        return url.to_owned();
    };
    let scheme = if scheme.is_empty() {
        String::new()
    } else {
        format!("{scheme}://")
    };
    let query = query.map_or(String::new(), |query| format!("?{query}"));
    format!("{scheme}***@{place}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_passwords() {
        for (url, shown) in [
            ("redis://a:7000/2?id=x", "redis://a:7000/2?id=x"),
            ("redis://u:se@cret@a?id=x", "redis://***@a?id=x"),
            ("unix://:secret@/run/a.sock", "unix://***@/run/a.sock"),
            ("u:secret@a:6379", "***@a:6379"),
        ] {
            assert_eq!(without_login(url), shown);
        }
    }
}
