use std::sync::Arc;

use leasehold::background::blocking;
use leasehold::{
    BoxFuture, BreakRecord, Broken, Error, ErrorKind, Key, Oversight, Pattern, Survey, SurveyedLock,
};

use crate::directory::Directory;
use crate::store::FileStore;
use crate::survey;

impl Oversight for FileStore {
    fn survey<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Survey, Error>> {
        Box::pin(async move {
            let (directory, pattern) = (Arc::clone(self.directory()), pattern.clone());
            let surveyed = blocking(move || survey(&directory, &pattern, limit)).await;
            surveyed
                .flatten()
                .map_err(|error| error.with_store(leasehold::Store::describe(self)))
        })
    }

    /// Always refused: nobody but its process can let go of a lock of the kernel.
    fn break_lease<'a>(
        &'a self,
        key: &'a Key,
        _record: &'a BreakRecord,
    ) -> BoxFuture<'a, Result<Broken, Error>> {
        let rule = "a lock of the kernel cannot be taken from its holder: end the process that \
                    holds it, and it is free";
        let error = Error::new(ErrorKind::Unsupported, rule).with_key(key);
        Box::pin(std::future::ready(Err(error)))
    }

    fn last_break<'a>(
        &'a self,
        _key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<BreakRecord>, Error>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

fn survey(directory: &Directory, pattern: &Pattern, limit: usize) -> Result<Survey, Error> {
    let mut keys = survey::list(directory, pattern.prefix(), usize::MAX)?;
    keys.retain(|key| pattern.matches(key.as_str()));
    keys.sort_unstable();
    let more = keys.len() > limit;
    keys.truncate(limit);
    let mut locks = Vec::with_capacity(keys.len());
    for key in keys {
        let holders = survey::holders(directory, &key)?;
        // Free by now, if there are none.
        if !holders.is_empty() {
            locks.push(SurveyedLock::new(key, holders));
        }
    }
    Ok(Survey::new(locks, more))
}
