//! `leasehold init` and `leasehold members`: initialize, show and change a quorum.

mod ask_members;
mod change;
mod init;
mod readmit;
mod show;
mod standing;

use std::time::Duration;

use leasehold::MemberSet;
use leasehold_redis::RedisStore;

use crate::args::{MembersArgs, StoreArgs};
use crate::config::{self, Addresses, Choice, Environment};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::Output;
use crate::own_client::OwnClient;
use crate::store_url::{self, OpenStore, Place};

pub(crate) use ask_members::{have_no_record, limited};
pub(crate) use init::init;

/// Shows the servers of a store, or changes a quorum.
pub(crate) fn members(args: &MembersArgs, output: &Output) -> Result<ExitCode, Failure> {
    match &args.change {
        None => show::show(args),
        Some(lock_options) => change::change(args, lock_options, output),
    }
}

/// How long the next change must wait after a change, and how long a server that may have forgotten
/// leases has no vote.
fn wait_after_change(set: &MemberSet) -> Duration {
    set.max_ttl + Duration::from_secs(1)
}

/// The servers of the configured store.
#[derive(Debug)]
struct Servers {
    addresses: Addresses,
    store: OpenStore,
}

impl Servers {
    fn choose(args: &StoreArgs) -> Result<Self, Failure> {
        let choice = config::choose(args, &Environment::read())?;
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
        if let Place::Folder(_) = Place::of(&addresses)? {
            return refuse("the store is a folder");
        }
        let store = OpenStore::at(&addresses)?;
        Ok(Self { addresses, store })
    }

    /// The same, but at least three: with fewer, a majority is all of them.
    fn choose_set(args: &StoreArgs) -> Result<Self, Failure> {
        let servers = Self::choose(args)?;
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

    fn urls(&self) -> &[String] {
        &self.addresses.urls
    }

    fn client(&self) -> OwnClient {
        self.store.client()
    }

    /// The quorum of these servers.
    fn quorum(&self) -> Result<RedisStore, Failure> {
        self.quorum_of(self.urls())
    }

    /// The quorum of the servers at `urls`, with the same limits.
    fn quorum_of(&self, urls: &[String]) -> Result<RedisStore, Failure> {
        store_url::servers(urls, self.addresses.limits)
    }
}
