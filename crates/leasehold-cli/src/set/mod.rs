//! The verbs about the members of a store: form a set, show it, change it.

mod change;
mod init;
mod readmit;
mod show;
mod standing;
mod survey;

use std::sync::Arc;
use std::time::Duration;

use leasehold::{Client, Member, MemberSet, Quorum};

use crate::args::{MembersArgs, StoreArgs};
use crate::config::{self, Addresses, Choice, Environment};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::store_url::{self, OpenStore, Place};

pub(crate) use init::init;
pub(crate) use survey::{have_no_card, limited};

/// Shows the members of a store, or changes a set.
pub(crate) fn members(args: &MembersArgs) -> Result<ExitCode, Failure> {
    match &args.change {
        None => show::show(args),
        Some(wish) => change::change(args, wish),
    }
}

/// How long after a change the next one must wait, and how long a member does not count that may
/// have forgotten leases.
fn wait_after_change(set: &MemberSet) -> Duration {
    set.max_ttl + Duration::from_secs(1)
}

/// The servers that were chosen as a store.
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
                "{what}: only a store of servers has members, such as --store \
                 redis://a,redis://b,redis://c"
            )))
        };
        let addresses = match choice {
            Choice::Local => return refuse("--local means files of this machine"),
            Choice::Unsaid => return refuse("no store is configured"),
            Choice::Stores(addresses) => addresses,
        };
        if let Place::Folder(_) = Place::of(&addresses)? {
            return refuse("the store is a folder");
        }
        let store = OpenStore::at(&addresses)?;
        Ok(Self { addresses, store })
    }

    /// The same, if there are so many that a majority is not all of them.
    fn choose_set(args: &StoreArgs) -> Result<Self, Failure> {
        let servers = Self::choose(args)?;
        let count = servers.urls().len();
        if count < 3 {
            let what = if count == 1 {
                "server is"
            } else {
                "servers are"
            };
            return Err(Failure::usage(format!(
                "{}: {count} {what} no set, and can be used as they are: a set has three or more",
                servers.addresses.source
            )));
        }
        Ok(servers)
    }

    fn urls(&self) -> &[String] {
        &self.addresses.urls
    }

    fn client(&self) -> Client {
        self.store.client()
    }

    fn members(&self) -> Result<Vec<Arc<dyn Member>>, Failure> {
        store_url::servers(self.urls())
    }

    /// The quorum of other members, within the same limits.
    fn quorum(&self, members: Vec<Arc<dyn Member>>) -> Result<Quorum, Failure> {
        store_url::quorum(members, self.addresses.limits)
    }
}
