use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::look::Pattern;
use leasehold::store::background::blocking;
use leasehold::store::{
    BoxFuture, Opened, Reading, RecordKey, RecordWrite, Records, WriteOutcome, exact_span,
};
use leasehold::{Error, ErrorKind, Fence, Key};

use super::session::FileSession;
use crate::directory::Directory;
use crate::directory::record_file::{self, Tried};
use crate::inspect::listing;

impl Records for FileSession {
    fn open_record<'a>(
        &'a self,
        record: &'a RecordKey,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Opened, Error>> {
        let key = record.key.clone();
        self.until_done(record, move |directory, now| {
            record_file::change(directory, &key, |content| content.open(fence, now))
        })
    }

    fn write_record<'a>(
        &'a self,
        record: &'a RecordKey,
        write: &'a RecordWrite,
    ) -> BoxFuture<'a, Result<WriteOutcome, Error>> {
        let (key, write) = (record.key.clone(), write.clone());
        let chance = self.context.env().entropy.next_u64();
        self.until_done(record, move |directory, now| {
            let written =
                record_file::change(directory, &key, |content| content.write(&write, now));
            // An attempt that has to be repeated changed nothing; the repetition sweeps.
            if chance.is_multiple_of(SWEEP_EVERY) && matches!(written, Ok(Tried::Done(_))) {
                record_file::sweep(directory, chance / SWEEP_EVERY, now);
            }
            written
        })
    }

    fn read_record<'a>(&'a self, record: &'a RecordKey) -> BoxFuture<'a, Result<Reading, Error>> {
        let key = record.key.clone();
        self.until_done(record, move |directory, now| {
            record_file::read(directory, &key, now)
        })
    }

    fn list_records<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Key>, Error>> {
        Box::pin(async move {
            let (directory, pattern) = (Arc::clone(self.store.directory()), pattern.clone());
            let listed = blocking(move || listing::keys_of_records(&directory, &pattern)).await;
            let listed = listed.flatten();
            let mut keys = listed.map_err(|error| error.with_store(self.store.to_string()))?;
            keys.truncate(limit);
            Ok(keys)
        })
    }
}

impl FileSession {
    /// Tries until no other process is using the file, which takes about as long as one write.
    fn until_done<'a, T: Send + 'static>(
        &'a self,
        record: &'a RecordKey,
        attempt: impl Fn(&Directory, WallTime) -> Result<Tried<T>, Error> + Send + Sync + 'static,
    ) -> BoxFuture<'a, Result<T, Error>> {
        let attempt = Arc::new(attempt);
        Box::pin(async move {
            let env = self.context.env();
            let give_up = env.clock.now() + TIMEOUT;
            loop {
                let (directory, attempt) =
                    (Arc::clone(self.store.directory()), Arc::clone(&attempt));
                let now = env.clock.wall();
                let tried = blocking(move || attempt(&directory, now)).await.flatten();
                match tried.map_err(self.store.at(&record.key))? {
                    Tried::Done(answer) => return Ok(answer),
                    Tried::Later if env.clock.now() < give_up => {}
                    Tried::Later => return Err(stuck(&self.store.lock_file(&record.key))),
                }
                let [least, most] = PAUSE;
                let soon = env.clock.now() + env.random_span(least, most);
                env.clock.sleep_until(soon).await;
            }
        })
    }
}

fn stuck(path: &Path) -> Error {
    let message = format!(
        "another process has used the record of {} for {}: it may be stopped",
        path.display(),
        exact_span(TIMEOUT)
    );
    Error::new(ErrorKind::Io, message)
}

/// On average, one in this many writes sweeps records that are over.
const SWEEP_EVERY: u64 = 8;

/// About as long as a disk takes to write a file through.
const PAUSE: [Duration; 2] = [Duration::from_micros(500), Duration::from_millis(5)];

const TIMEOUT: Duration = Duration::from_secs(30);
