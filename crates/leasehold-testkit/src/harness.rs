//! What the contract suite needs from the tests of a store.

use std::fmt::{self, Debug};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use leasehold::Key;
use leasehold::store::{Session, Store};

/// One store as the contract suite sees it: a set of locks. This process and others can open them again and
/// again, and the suite can break them from outside.
///
/// It lives as long as the tests that use it. Dropping it stops the servers and removes their files.
pub trait Harness: Debug + Send + Sync {
    /// Opens the locks again, as another process would. The store shares no connection or table with stores
    /// opened before.
    fn open(&self) -> Arc<dyn Store>;

    /// Removes every trace of `key` behind the store's back, including its fence counter.
    fn forget(&self, key: &Key);

    /// Returns the stores that grant the locks, one by one: the members of a quorum, or the store itself.
    fn locations(&self) -> Vec<Arc<dyn Store>> {
        vec![self.open()]
    }

    /// Returns words that no description and no error may contain.
    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the ports of the servers. The suite puts a [proxy](crate::faults::Proxy) in front of each, to break the network.
    fn servers(&self) -> Vec<u16> {
        Vec::new()
    }

    /// Returns what another process passes to [`OpenAt`] to reach the same locks through these ports in place of
    /// [those of the servers](Self::servers). Only called if the suite is [open to other processes](Suite::in_other_processes).
    fn address_through(&self, _ports: &[u16]) -> String {
        panic!("the locks of this process have no address")
    }

    /// Returns what another process passes to [`OpenAt`] to reach the same locks.
    fn address(&self) -> String {
        self.address_through(&self.servers())
    }

    /// Returns what the servers can suffer.
    fn server_faults(&self) -> &[ServerFault] {
        &[]
    }

    /// Begins the fault of this name. No other one is under way.
    fn inject(&self, fault: &str) {
        panic!("no fault is called {fault}")
    }

    /// Ends the fault of this name, which was [injected](Self::inject).
    fn heal(&self, fault: &str) {
        panic!("no fault is called {fault}")
    }

    /// Returns for how long after the last fault of a server the store may refuse or keep a lock that is free.
    fn recovery(&self) -> Duration {
        Duration::from_secs(5)
    }

    /// Returns the names of what the store still has of locks that begin with `prefix`, without counters and records. All locks are
    /// free, and all clients are gone.
    fn leftovers(&self, _prefix: &str) -> Vec<String> {
        Vec::new()
    }
}

/// A fault that the servers of a store can suffer, for the random programs of the contract suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerFault {
    pub(crate) name: &'static str,
    pub(crate) impact: Impact,
}

/// What a fault may do to leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Impact {
    None,
    /// A lease may be lost before its deadline. The lock stays closed until then.
    LosesLeases,
    /// A lease may end early, and the lock is granted again.
    EndsLeases,
}

impl ServerFault {
    /// Returns a fault that takes no lease from its holder.
    pub const fn new(name: &'static str) -> Self {
        let impact = Impact::None;
        Self { name, impact }
    }

    /// The same fault, if a holder may lose its lease through it before the deadline. The lock stays closed until then.
    #[must_use]
    pub const fn that_loses_leases(mut self) -> Self {
        self.impact = Impact::LosesLeases;
        self
    }

    /// The same fault, if the store does not promise exclusion meanwhile: a lease may end early, and only fences protect.
    #[must_use]
    pub const fn that_ends_leases(mut self) -> Self {
        self.impact = Impact::EndsLeases;
        self
    }
}

/// A server that asks for the password of one user. It grants other locks than the [harness](Harness).
pub trait LoginServer: Debug {
    /// Opens its locks.
    fn open(&self, login: &Login) -> Arc<dyn Store>;

    /// Changes the password of the user, and ends the connections of the user. Returns `false` if no password can change, as where
    /// it is a part of the user's identity.
    fn change_password(&self, password: &str) -> bool;
}

/// How a client logs in.
#[derive(Clone)]
pub enum Login {
    /// Not at all.
    None,
    /// With a password in the address.
    Password(String),
    /// With a file that has the password in its only line.
    File(PathBuf),
    /// With a function that returns the password of each login.
    Function(Arc<dyn Fn() -> String + Send + Sync>),
}

impl Login {
    /// The user that logs in.
    pub const USER: &str = "ann";

    /// Returns the address with this login, in the form that the stores of Leasehold have in common. [`Function`](Self::Function)
    /// leaves it as it is.
    pub fn in_url(&self, url: &str) -> String {
        let user = Self::USER;
        match self {
            Self::None | Self::Function(_) => url.into(),
            Self::Password(password) => url.replacen("://", &format!("://{user}:{password}@"), 1),
            Self::File(file) => {
                let url = url.replacen("://", &format!("://{user}@"), 1);
                let next = if url.contains('?') { '&' } else { '?' };
                format!("{url}{next}password_file={}", file.display())
            }
        }
    }
}

impl Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Password(_) => f.write_str("Password"),
            Self::File(file) => f.debug_tuple("File").field(file).finish(),
            Self::Function(_) => f.write_str("Function"),
        }
    }
}

/// A store that must keep the contract, and how its tests reach it.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    pub(crate) name: &'static str,
    pub(crate) start: Start,
    pub(crate) open_at: Option<OpenAt>,
    pub(crate) start_login: Option<StartLogin>,
    pub(crate) has_servers: bool,
    pub(crate) without_network: Option<&'static str>,
    pub(crate) without: &'static [Optional],
    pub(crate) only_programs: bool,
}

/// Sets up a store.
pub type Start = fn() -> Arc<dyn Harness>;

/// Starts a server that asks the user [`Login::USER`] for this password.
pub type StartLogin = fn(&str) -> Box<dyn LoginServer>;

/// Opens a store by its [`Harness::address_through`].
pub type OpenAt = fn(&str) -> Arc<dyn Store>;

impl Suite {
    /// Returns the suite of a store. All its tests begin with `name`. `start` sets the store up, once, before the first
    /// test.
    pub const fn new(name: &'static str, start: Start) -> Self {
        Self {
            name,
            start,
            open_at: None,
            start_login: None,
            has_servers: false,
            without_network: None,
            without: &[],
            only_programs: false,
        }
    }

    /// The same suite, with tests that use the locks from several processes. `open_at` opens the store there. Only locks
    /// that exist in one process do without.
    #[must_use]
    pub const fn in_other_processes(mut self, open_at: OpenAt) -> Self {
        self.open_at = Some(open_at);
        self
    }

    /// The same suite, with tests of passwords.
    #[must_use]
    pub const fn behind_a_login(mut self, start: StartLogin) -> Self {
        self.start_login = Some(start);
        self
    }

    /// The same suite, with tests that break the network between clients and the [servers](Harness::servers). A store with a server
    /// needs them, or a reason for [none](Self::without_network).
    #[must_use]
    pub const fn behind_proxies(mut self) -> Self {
        self.has_servers = true;
        self
    }

    /// The same suite of a store whose network no proxy can break, for example because it is a database in files, or behind HTTPS. The output lists the tests that break the network as ignored, with this reason. Then the suite
    /// does not check what the store promises while its network fails.
    #[must_use]
    pub const fn without_network(mut self, reason: &'static str) -> Self {
        self.without_network = Some(reason);
        self
    }

    /// The same suite of a store that lacks these optional traits. The suite checks that they are absent, and ignores
    /// their tests. It checks that all others are present.
    #[must_use]
    pub const fn without(mut self, absent: &'static [Optional]) -> Self {
        self.without = absent;
        self
    }

    /// The same suite, with random programs alone. For servers in an arrangement whose contract another suite checks.
    #[must_use]
    pub const fn only_programs(mut self) -> Self {
        self.only_programs = true;
        self
    }

    /// Whether the store has this optional trait.
    pub(crate) fn offers(&self, part: Optional) -> bool {
        !self.without.contains(&part)
    }
}

/// An optional trait of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Optional {
    /// [`leasehold::store::Inspection`].
    Inspection,
    /// [`leasehold::store::Admin`].
    Admin,
    /// [`leasehold::store::Records`].
    Records,
    /// [`leasehold::store::Health`].
    Health,
}

impl Optional {
    /// Every optional trait.
    pub const ALL: &'static [Self] = &[Self::Inspection, Self::Admin, Self::Records, Self::Health];

    /// The name of the trait.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inspection => "Inspection",
            Self::Admin => "Admin",
            Self::Records => "Records",
            Self::Health => "Health",
        }
    }

    /// Whether `session` returns the trait.
    pub(crate) fn is_offered(self, session: &dyn Session) -> bool {
        match self {
            Self::Inspection => session.inspection().is_some(),
            Self::Admin => session.admin().is_some(),
            Self::Records => session.records().is_some(),
            Self::Health => session.health().is_some(),
        }
    }
}
