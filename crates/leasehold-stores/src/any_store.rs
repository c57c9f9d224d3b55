use std::sync::Arc;

use leasehold::store::{Store, without_secrets};
use leasehold::{Error, ErrorKind};

#[cfg(feature = "file")]
use crate::Folder;
use crate::kind::StoreKind;

/// The store that addresses name. No server was asked yet, and no folder created.
///
/// Programs that work on any store use [`Connect`](crate::Connect) or [`open`]. This type is for those that need more of
/// one kind, as the checks of `leasehold doctor` do.
///
/// # Examples
///
/// ```
/// use leasehold_stores::AnyStore;
///
/// match AnyStore::parse("redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3")? {
///     AnyStore::Redis(store) => assert_eq!(store.member_ids().count(), 3),
///     other => println!("not a quorum: {other:?}"),
/// }
/// # Ok::<(), leasehold::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyStore {
    /// A folder of lock files.
    #[cfg(feature = "file")]
    File(Folder),
    /// One Redis server, or a quorum of several.
    #[cfg(feature = "redis")]
    Redis(leasehold_redis::RedisStore),
    /// A PostgreSQL server.
    #[cfg(feature = "postgres")]
    Postgres(leasehold_postgres::PostgresStore),
    /// An etcd ensemble.
    #[cfg(feature = "etcd")]
    Etcd(leasehold_etcd::EtcdStore),
    /// A ZooKeeper ensemble.
    #[cfg(feature = "zookeeper")]
    ZooKeeper(leasehold_zookeeper::ZooKeeperStore),
}

/// Opens the store at `addresses`, in the forms that [the crate](crate#addresses) lists. Sends nothing to a server.
///
/// # Errors
///
/// Those of [`Connect::connect`](crate::Connect::connect).
///
/// # Examples
///
/// ```no_run
/// use leasehold::Client;
///
/// let store = leasehold_stores::open("etcd://10.0.0.1,10.0.0.2,10.0.0.3")?;
/// let locks = Client::builder(store).label("billing").build();
/// # Ok::<(), leasehold::Error>(())
/// ```
pub fn open(addresses: &str) -> Result<Arc<dyn Store>, Error> {
    AnyStore::parse(addresses)?.open()
}

/// Splits a list of addresses at its commas. A ZooKeeper ensemble, or a PostgreSQL server and its standbys, is one
/// address.
pub fn split(addresses: &str) -> Vec<String> {
    let addresses = addresses.trim();
    if StoreKind::of(addresses).is_ok_and(StoreKind::has_several_hosts) {
        return vec![addresses.to_owned()];
    }
    addresses
        .split(',')
        .map(|url| url.trim().to_owned())
        .collect()
}

impl AnyStore {
    /// Returns the store at `addresses`, a list with commas.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn parse(addresses: &str) -> Result<Self, Error> {
        Self::new(&split(addresses))
    }

    /// Returns the store at `addresses`, whose kind is that of the first address.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for an address that breaks a rule, and [`ErrorKind::Unsupported`] if this build lacks the
    /// store.
    pub fn new(addresses: &[impl AsRef<str>]) -> Result<Self, Error> {
        let addresses: Vec<&str> = addresses.iter().map(AsRef::as_ref).collect();
        let [first, others @ ..] = addresses.as_slice() else {
            return Err(invalid("no store URL; expected at least one"));
        };
        if addresses.iter().any(|address| address.is_empty()) {
            return Err(invalid(
                "a store URL is empty; give one such as redis://host, or remove an extra comma",
            ));
        }
        if first.starts_with(['/', '.', '~']) {
            let text = format!(
                "{:?} is a path; a folder for lock files is given as file:///absolute/path",
                without_secrets(first)
            );
            return Err(invalid(&text));
        }
        let kind = StoreKind::of(first)?;
        check_list(kind, first, others)?;
        match kind {
            #[cfg(feature = "file")]
            StoreKind::File => Folder::parse(first).map(Self::File),
            #[cfg(feature = "redis")]
            StoreKind::Redis => leasehold_redis::RedisStore::new(&addresses).map(Self::Redis),
            #[cfg(feature = "postgres")]
            StoreKind::Postgres => {
                leasehold_postgres::PostgresStore::new(first).map(Self::Postgres)
            }
            // One URL names several servers, with commas between them.
            #[cfg(feature = "etcd")]
            StoreKind::Etcd => leasehold_etcd::EtcdStore::new(&addresses.join(",")).map(Self::Etcd),
            #[cfg(feature = "zookeeper")]
            StoreKind::ZooKeeper => {
                leasehold_zookeeper::ZooKeeperStore::new(first).map(Self::ZooKeeper)
            }
            #[allow(
                unreachable_patterns,
                reason = "a build with all features has all kinds"
            )]
            _ => Err(kind.missing(first)),
        }
    }

    /// Prepares the store for its first lock, as `leasehold init` does: initializes a quorum of Redis servers with the default
    /// limits, or creates and updates the schema of PostgreSQL. Returns whether it changed anything. Any other store needs
    /// nothing. A program may call it at each start, and several may call it at once.
    ///
    /// # Errors
    ///
    /// Those of [`RedisStore::init`](https://docs.rs/leasehold-redis/latest/leasehold_redis/struct.RedisStore.html#method.init)
    /// and [`PostgresStore::init`](https://docs.rs/leasehold-postgres/latest/leasehold_postgres/struct.PostgresStore.html#method.init):
    /// a server that does not answer, a missing right, or servers of another quorum.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. A quorum may then be initialized on some servers, and the next call completes it. Must be
    /// polled in a tokio runtime.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), leasehold::Error> {
    /// use leasehold::Client;
    /// use leasehold_stores::AnyStore;
    ///
    /// let store = AnyStore::parse("postgres://app@10.0.0.1/app")?;
    /// store.init().await?;
    /// let locks = Client::new(store.open()?);
    /// # Ok(()) }
    /// ```
    #[cfg_attr(
        not(any(feature = "postgres", feature = "redis")),
        expect(clippy::unused_async, reason = "the stores of this build need nothing")
    )]
    pub async fn init(&self) -> Result<bool, Error> {
        match self {
            #[cfg(feature = "redis")]
            Self::Redis(store) if store.member_ids().count() > 1 => store.init().await,
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => {
                let done = store.init().await?;
                Ok(done != leasehold_postgres::Initialized::Current)
            }
            _ => Ok(false),
        }
    }

    /// Opens the store for clients. Sends nothing to a server; creates a folder of lock files if it is absent.
    ///
    /// # Errors
    ///
    /// A folder that cannot be used.
    pub fn open(self) -> Result<Arc<dyn Store>, Error> {
        match self {
            #[cfg(feature = "file")]
            Self::File(folder) => Ok(folder.open()?.into()),
            #[cfg(feature = "redis")]
            Self::Redis(store) => Ok(store.into()),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => Ok(store.into()),
            #[cfg(feature = "etcd")]
            Self::Etcd(store) => Ok(store.into()),
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(store) => Ok(store.into()),
        }
    }
}

/// Refuses a list of addresses that is no store.
fn check_list(kind: StoreKind, first: &str, others: &[&str]) -> Result<(), Error> {
    let has = |kind: StoreKind| {
        let is_it = |address: &&str| StoreKind::of(address).is_ok_and(|it| it == kind);
        others.iter().any(is_it)
    };
    let is_several = !others.is_empty();
    if has(StoreKind::File) || (kind == StoreKind::File && is_several) {
        return Err(invalid(
            "a file store cannot be part of a quorum; use it alone, or list servers only",
        ));
    }
    if has(StoreKind::ZooKeeper) || (kind == StoreKind::ZooKeeper && is_several) {
        return Err(invalid(
            "give all servers of a ZooKeeper ensemble in one address, such as zk://a,b,c/locks",
        ));
    }
    if kind == StoreKind::Postgres && (is_several || first.matches("://").count() > 1) {
        return Err(invalid(
            "several PostgreSQL servers are no quorum; name one, or a primary and its standbys as postgres://a,b/app",
        ));
    }
    let differs = |address: &&&str| StoreKind::of(address).is_ok_and(|it| it != kind);
    if let Some(other) = others.iter().find(differs) {
        return Err(invalid(&format!(
            "{:?} and {:?} are stores of different kinds; give the addresses of one store",
            without_secrets(first),
            without_secrets(other),
        )));
    }
    Ok(())
}

fn invalid(text: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, text)
}
