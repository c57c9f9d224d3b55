use std::time::Duration;

use leasehold::store::{MemberId, MemberSet};
use leasehold_redis::{RedisMember, RedisStore};

use crate::config::{self, Addresses, Choice};
use crate::options::store_args::StoreArgs;
use crate::output::Output;
use crate::output::failure::Failure;
use crate::store::OpenStore;
use crate::store::address::StoreAddress;
use crate::store::client::OwnClient;

/// How long the next change must wait after a change, and how long a server that may have forgotten
/// leases has no vote.
pub(crate) fn wait_after_change(set: &MemberSet) -> Duration {
    set.max_ttl + Duration::from_secs(1)
}

/// The servers of the configured store.
#[derive(Debug)]
pub(crate) struct Servers {
    addresses: Addresses,
    store: OpenStore,
}

impl Servers {
    pub(crate) fn choose(args: &StoreArgs, output: &Output) -> Result<Self, Failure> {
        let choice = config::choose_store(args, output)?;
        let refuse = |what| {
            Err(Failure::usage(format!(
                "{what}, which has no servers; name them, for example --store \
                 redis://a,redis://b,redis://c"
            )))
        };
        let addresses = match choice {
            Choice::Local => return refuse("--local uses files of this machine"),
            Choice::Unsaid => {
                return refuse("no store is configured; the default is files of this machine");
            }
            Choice::Stores(addresses) => addresses,
        };
        if let StoreAddress::Folder(_) = StoreAddress::of(&addresses)? {
            return refuse("the store is a folder");
        }
        let store = OpenStore::at(&addresses)?;
        Ok(Self { addresses, store })
    }

    /// The same, but at least three: with fewer, a majority is all of them.
    pub(crate) fn choose_quorum(args: &StoreArgs, output: &Output) -> Result<Self, Failure> {
        let servers = Self::choose(args, output)?;
        let count = servers.urls().len();
        if count < 3 {
            let what = match count {
                1 => "a single server needs no quorum; use its URL directly",
                _ => "two servers need no initialization; a quorum has three servers or more",
            };
            return Err(Failure::usage(format!(
                "{}: {what}",
                servers.addresses.source
            )));
        }
        Ok(servers)
    }

    pub(crate) fn urls(&self) -> &[String] {
        &self.addresses.urls
    }

    pub(crate) fn client(&self) -> OwnClient {
        self.store.client()
    }

    /// The quorum of these servers.
    pub(crate) fn quorum(&self) -> Result<RedisStore, Failure> {
        Ok(RedisStore::new(self.urls())?)
    }
}

/// Which of the servers `member` is: an id or an address.
pub(crate) fn place_of(
    servers: &Servers,
    member: &str,
    quorum: &RedisStore,
) -> Result<usize, Failure> {
    let id = if member.contains("://") {
        RedisMember::new(member)?.id().to_string()
    } else {
        member.to_owned()
    };
    let ids: Vec<_> = quorum.member_ids().collect();
    let is_meant = |(url, it): (&String, &&MemberId)| url == member || it.as_str() == id;
    let place = servers.urls().iter().zip(&ids).position(is_meant);
    place.ok_or_else(|| {
        let ids: Vec<_> = ids.iter().map(|it| it.as_str()).collect();
        Failure::usage(format!(
            "{:?} is not a member of the quorum; its members are {}",
            without_login(&id),
            ids.join(", ")
        ))
    })
}

/// The address with `***` in place of user and password.
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
