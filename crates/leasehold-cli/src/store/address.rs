//! Which store an address names. A further kind of store is one more case here.

use leasehold_stores::AnyStore;
use leasehold_stores::config::open_with;

use crate::output::failure::Failure;
use crate::store::addresses::Choice;
use crate::store::backend::Backend;
use crate::store::files::LockFiles;

/// Returns the store that was chosen.
pub(crate) fn backend(choice: &Choice) -> Result<Box<dyn Backend + '_>, Failure> {
    let addresses = match choice {
        Choice::Local => return Ok(Box::new(LockFiles::Local)),
        Choice::Unsaid => return Ok(Box::new(LockFiles::Unsaid)),
        Choice::Stores(addresses) => addresses,
    };
    let opened = open_with(&addresses.urls, addresses.password.as_deref());
    Ok(match addresses.blame(opened)? {
        AnyStore::File(folder) => Box::new(LockFiles::Folder(folder, addresses)),
        #[cfg(feature = "redis")]
        AnyStore::Redis(store) => Box::new(crate::store::redis::RedisServers {
            store,
            urls: &addresses.urls,
        }),
        #[cfg(feature = "postgres")]
        AnyStore::Postgres(store) => Box::new(store),
        #[cfg(feature = "etcd")]
        AnyStore::Etcd(store) => Box::new(store),
        #[cfg(feature = "zookeeper")]
        AnyStore::ZooKeeper(store) => Box::new(store),
        _ => {
            let text = "this build of leasehold has no store for this address";
            return addresses.blame(Err(Failure::usage(text)));
        }
    })
}

/// Reads an address of any kind, for the fuzz target.
#[cfg(any(test, fuzzing))]
pub(crate) fn read(addresses: &str) {
    if let Err(error) = AnyStore::parse(addresses) {
        let _ = error.to_string();
    }
}
