//! The stores. This folder is the only one that names them.

pub(crate) mod address;
#[cfg(any(test, feature = "redis"))]
pub(crate) mod address_text;
pub(crate) mod addresses;
pub(crate) mod backend;
#[cfg(any(
    feature = "etcd",
    feature = "postgres",
    feature = "redis",
    feature = "zookeeper"
))]
#[cfg_attr(
    not(all(feature = "etcd", feature = "redis", feature = "zookeeper")),
    allow(dead_code, reason = "some stores lack some of the checks")
)]
mod checks;
pub(crate) mod client;
#[cfg(feature = "etcd")]
mod etcd;
pub(crate) mod files;
#[cfg(feature = "redis")]
pub(crate) mod limit;

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod quorum;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "zookeeper")]
mod zookeeper;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use leasehold::Client;
use leasehold::look::Owner;
use leasehold::store::{Expiry, Store};

use crate::options::lock_options::LockOptions;
use crate::output::Output;
use crate::output::failure::Failure;
use crate::output::message::Message;
use crate::process::user;
use crate::store::addresses::{Addresses, Choice};
use crate::store::backend::{Backend, Opened};
use crate::store::client::OwnClient;

#[cfg(feature = "redis")]
pub(crate) use quorum::Quorum;

/// A store with valid addresses. Nothing was sent to it yet.
#[derive(Debug)]
pub(crate) struct OpenStore {
    opened: Opened,
    /// The location of its locks, the same for all spellings of the same addresses.
    location: String,
    /// The option, the variable, or the line of a file that configures the store. `None` for the default.
    source: Option<String>,
    copies: usize,
    /// `None` for the files of this machine and user.
    addresses: Option<Addresses>,
}

impl OpenStore {
    pub(crate) fn open(choice: &Choice) -> Result<Self, Failure> {
        Self::at(choice, &*address::backend(choice)?)
    }

    /// Opens the store that was chosen.
    pub(crate) fn at(choice: &Choice, backend: &dyn Backend) -> Result<Self, Failure> {
        let opened = backend.open()?;
        let mut locations = opened.store.locations();
        locations.sort_unstable();
        let source = match choice {
            Choice::Local => Some("--local".into()),
            Choice::Unsaid => None,
            Choice::Stores(addresses) => Some(addresses.source.clone()),
        };
        let addresses = match choice {
            Choice::Stores(addresses) => Some(addresses.clone()),
            Choice::Local | Choice::Unsaid => None,
        };
        Ok(Self {
            location: locations.join("; "),
            copies: backend.copies(),
            opened,
            source,
            addresses,
        })
    }

    /// Returns the addresses of the store, with their credentials.
    pub(crate) fn addresses(&self) -> Option<&Addresses> {
        self.addresses.as_ref()
    }

    /// Prints a notice if the store is the default.
    pub(crate) fn print_notice(&self, output: &Output) {
        if self.source.is_none() {
            output.print_message(&Message::Notice(
                "no store configured; using a lock local to this machine and user (pass --local to silence \
                 this notice)",
            ));
        }
    }

    /// Returns what configures the store; `None` for the default.
    pub(crate) fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// Names the store to people, and where it was configured. A lock that is free here may be held in another
    /// store. Scripts find both in the JSON.
    pub(crate) fn print_on_terminal(&self, output: &Output) {
        match self.source() {
            Some(source) if output.has_terminal() => {
                let text = format!("store: {} (from {source})", self.opened.store);
                output.print_message(&Message::Notice(&text));
            }
            Some(_) => {}
            None => self.print_notice(output),
        }
    }

    /// A client of the store, with a thread of its own.
    pub(crate) fn client(&self) -> OwnClient {
        OwnClient::new(Self::client_of(&self.opened.store))
    }

    /// A client that only watches: it initializes no quorum, and maintains the records of none.
    pub(crate) fn watcher(&self) -> OwnClient {
        let store = self.opened.reader.as_ref().unwrap_or(&self.opened.store);
        OwnClient::watching(Self::client_of(store))
    }

    fn client_of(store: &Arc<dyn Store>) -> Client {
        Client::builder(Arc::clone(store))
            .program("leasehold")
            .build()
    }

    /// A client that takes these locks, as others see it.
    pub(crate) fn holder(&self, lock_options: &LockOptions) -> OwnClient {
        let command = lock_options.command.as_deref();
        let client = Client::builder(Arc::clone(&self.opened.store))
            .program(lock_options.program)
            .user(user::name())
            .label(lock_options.label.as_deref().unwrap_or_default())
            .command(command.unwrap_or_default());
        OwnClient::new(client.build())
    }

    /// The number of servers that each keep a copy of a lock; 1 for files and ensembles.
    pub(crate) fn copies(&self) -> usize {
        self.copies
    }

    /// The ids of the members, without credentials.
    pub(crate) fn members(&self) -> String {
        self.opened.members.join(",")
    }

    /// The location of its locks, without credentials. Two stores with the same locks have the same.
    pub(crate) fn location(&self) -> &str {
        &self.location
    }

    /// The descriptor that holds the lock, for stores that use `flock`.
    pub(crate) fn descriptor(&self, owner: Owner) -> Option<OwnedFd> {
        self.opened.descriptors.as_ref()?.descriptor(owner)
    }

    /// Refuses a store without leases for `subcommand`: a handle needs a lease, which lasts without a process.
    pub(crate) fn require_leases(&self, subcommand: &str) -> Result<(), Failure> {
        if self.opened.store.guarantees().expiry == Expiry::Lease {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "`{subcommand}` needs a store with leases: in {} a lock ends with the process that holds it; use \
             `leasehold hold` or `leasehold run`",
            self.members()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::defaults::Defaults;
    use crate::output::exit_code::ExitCode;

    fn open(urls: &[&str]) -> Result<OpenStore, Failure> {
        OpenStore::open(&Choice::Stores(Addresses {
            urls: urls.iter().map(|url| (*url).to_owned()).collect(),
            source: "--store".into(),
            defaults: Defaults::default(),
            password: None,
            warnings: Vec::new(),
        }))
    }

    fn refusal(urls: &[&str]) -> String {
        let failure = open(urls).unwrap_err();
        assert_eq!(failure.code, ExitCode::USAGE, "{failure}");
        failure.to_string()
    }

    #[test]
    fn bad_address_names_its_source() {
        for url in ["file:a", "mysql://a", "redis://", "etcd://", "/tmp/locks"] {
            let text = refusal(&[url]);
            assert!(
                text.starts_with("--store: ") && text.contains(url),
                "{text}"
            );
        }
    }

    #[test]
    fn stores_with_other_locks_are_other_places() {
        let location = |urls: &[&str]| open(urls).unwrap().location().to_owned();
        let three = ["redis://u:pw@a", "redis://b", "redis://c"];
        let again = ["redis://c:6379", "redis://A", "redis://u:other@b/0"];
        assert_eq!(location(&three), location(&again));
        assert!(!location(&three).contains("pw"));
        for other in [
            ["redis://a", "redis://b", "redis://c?prefix=app"],
            ["redis://a", "redis://b", "redis://c/1"],
            ["redis://a", "redis://b", "redis://d"],
        ] {
            assert_ne!(location(&three), location(&other), "{other:?}");
        }
        assert_ne!(location(&three), location(&three[..1]));
    }

    #[test]
    fn members_are_named_without_credentials() {
        let store = open(&["redis://u:pw@a", "redis://b:7000", "redis://c?id=third"]).unwrap();
        assert_eq!(store.members(), "a:6379,b:7000,third");
        assert_eq!(store.copies(), 3);
    }

    #[test]
    fn ensemble_has_one_copy_of_a_lock() {
        for urls in ["etcd://a,b,c", "zk://a,b,c/locks", "postgres://a,b/locks"] {
            assert_eq!(open(&[urls]).unwrap().copies(), 1, "{urls}");
        }
    }
}
