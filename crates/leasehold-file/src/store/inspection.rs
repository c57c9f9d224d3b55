use std::sync::Arc;

use leasehold::look::{Holder, ListedLock, LockListing, Pattern};
use leasehold::store::background::blocking;
use leasehold::store::{BoxFuture, Inspection};
use leasehold::{Error, Key};

use super::session::FileSession;
use crate::directory::Directory;
use crate::inspect::listing;

impl Inspection for FileSession {
    fn holders<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Holder>, Error>> {
        Box::pin(async move {
            let (directory, wanted) = (Arc::clone(self.store.directory()), key.clone());
            let looked = blocking(move || listing::holders(&directory, &wanted)).await;
            looked.flatten().map_err(self.store.at(key))
        })
    }

    fn list_locks<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<LockListing, Error>> {
        Box::pin(async move {
            let (directory, pattern) = (Arc::clone(self.store.directory()), pattern.clone());
            let listed = blocking(move || list_locks(&directory, &pattern, limit)).await;
            listed
                .flatten()
                .map_err(|error| error.with_store(self.store.to_string()))
        })
    }
}

fn list_locks(
    directory: &Directory,
    pattern: &Pattern,
    limit: usize,
) -> Result<LockListing, Error> {
    let (mut keys, mut unreadable) = listing::held_keys(directory, pattern.prefix())?;
    keys.retain(|key| pattern.matches(key.as_str()));
    keys.sort_unstable();
    let more = keys.len() > limit;
    keys.truncate(limit);
    let mut locks = Vec::with_capacity(keys.len());
    for key in keys {
        match listing::holders(directory, &key) {
            // Free by now.
            Ok(holders) if holders.is_empty() => {}
            Ok(holders) => locks.push(ListedLock::new(key, holders)),
            Err(error) => unreadable.push(error),
        }
    }
    Ok(LockListing::new(locks, more).with_unreadable(unreadable))
}
