//! Values next to locks, which only fences can write. A node has the record, and further nodes below it the parts of a
//! long value.

use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::look::Pattern;
use leasehold::store::kit::{LoadedRecord, RecordCell};
use leasehold::store::{KeptValue, RECORD_MEMORY, RecordKey, RecordState, RecordWrite, Version};
use leasehold::{Error, ErrorKind, Key};

use super::inspection::matching;
use super::questions::data_of;
use super::refusal::refused;
use super::session::{LockSession, LocksInner};
use crate::client::{self, Code, Connection, Lifetime, Op, Stat};
use crate::queue::{self, Paths};

impl RecordCell for LockSession {
    /// The version of the node; `None` if it does not exist.
    type Revision = Option<i32>;

    async fn load(&self, record: &RecordKey) -> Result<LoadedRecord<Option<i32>>, Error> {
        let connection = self.0.connection().await?;
        let (_, path) = Paths::of_record(self.0.root(), record);
        let stored = self.0.stored(&connection, &path).await?;
        let revision = stored.as_ref().map(|stored| stored.stat.version);
        let stored = stored.unwrap_or_default();
        Ok(LoadedRecord {
            now: self.0.now(&connection, &stored).await?,
            state: stored.state,
            revision,
        })
    }

    async fn swap(
        &self,
        record: &RecordKey,
        loaded: &Option<i32>,
        state: &RecordState<WallTime>,
        retention: Option<Duration>,
    ) -> Result<bool, Error> {
        let connection = self.0.connection().await?;
        let (folder, path) = Paths::of_record(self.0.root(), record);
        let Some(version) = *loaded else {
            // It is loaded again, with a version.
            self.0.create_record(&connection, &folder, &path).await?;
            return Ok(false);
        };
        let change = (state, retention);
        self.0.store(&connection, &path, version, change).await
    }

    async fn keys(&self, pattern: &Pattern, limit: usize) -> Result<Vec<Key>, Error> {
        let connection = self.0.connection().await?;
        let all = queue::records(self.0.root());
        let folders = self.0.children(&connection, &[&all]).await?;
        let folders: Vec<_> = folders.iter().map(|name| format!("{all}/{name}")).collect();
        let names = self.0.children(&connection, &folders).await?;
        let mut keys = matching(&names, pattern);
        keys.truncate(limit);
        Ok(keys)
    }
}

/// A record as the server has it.
#[derive(Default)]
struct Stored {
    state: RecordState<WallTime>,
    /// The version of its node, and when it was written.
    stat: Stat,
}

/// How long a part of a value may be: two of them and more are within the limit of one message, which is 1 MiB by
/// default.
const PART_MAX: usize = 400 * 1024;

impl LocksInner {
    /// Returns the time of the leader by which to judge a record. It is not before the last change, unless something is
    /// over by then: what a client remembers of the clock is a moment late, and the record would last longer than it was kept for.
    async fn now(&self, connection: &Connection, stored: &Stored) -> Result<WallTime, Error> {
        let first_end = first_end(&stored.state).map_or(i64::MAX, millis);
        let now = self.time_for(connection, first_end).await?;
        let changed = Some(stored.stat.changed_ms).filter(|changed| *changed < first_end);
        Ok(wall(changed.map_or(now, |changed| now.max(changed))))
    }

    /// Returns the clock of the leader in milliseconds, to compare with `end`. A time that is not before the end is a fresh
    /// answer.
    pub(super) async fn time_for(&self, connection: &Connection, end: i64) -> Result<i64, Error> {
        match connection.leader_time_before(end) {
            Some(now) => Ok(now),
            None => self.ask_time(connection).await,
        }
    }

    /// Returns the clock of the leader in milliseconds.
    pub(super) async fn ask_time(&self, connection: &Connection) -> Result<i64, Error> {
        let path = queue::fences(self.root());
        loop {
            let op = Op::SetData(&path, &[], client::ANY);
            match connection.ask(&op, client::stat).await? {
                Ok(answer) => {
                    connection.learn_leader_clock(answer.value);
                    return Ok(answer.value.changed_ms);
                }
                Err(Code::NO_NODE) => {
                    self.ensure_folder(connection, &path, Lifetime::Persistent)
                        .await?;
                }
                Err(code) => return Err(refused(&path, code)),
            }
        }
    }

    /// Reads a record; `None` if there is none.
    async fn stored(&self, connection: &Connection, path: &str) -> Result<Option<Stored>, Error> {
        for _ in 0..TRIES {
            let mut batch = connection.batch();
            batch.sync();
            let data = batch.data(path, false);
            batch.send();
            let (data, stat) = match data.answer().await? {
                Ok(answer) => answer.value,
                Err(Code::NO_NODE) => return Ok(None),
                Err(code) => return Err(refused(path, code)),
            };
            let header = Header::read(&data).ok_or_else(|| {
                let text = format!("{path} is no record that this version of leasehold reads");
                Error::new(ErrorKind::Corrupt, text)
            })?;
            let mut bytes = header.bytes.to_vec();
            let mut is_whole = true;
            for part in 0..header.parts {
                let Some((version, _)) = header.value else {
                    break;
                };
                let part = part_path(path, version, part);
                match data_of(connection, &part, false).await? {
                    Some(more) => bytes.extend(more),
                    None => is_whole = false,
                }
            }
            // Parts go only when the record has others.
            if is_whole {
                return Ok(Some(header.stored(stat, bytes)));
            }
        }
        let text = format!("{path} lacks parts of its value");
        Err(Error::new(ErrorKind::Corrupt, text))
    }

    /// Stores a record, unless it has changed since this version. Returns whether it did.
    async fn store(
        &self,
        connection: &Connection,
        path: &str,
        version: i32,
        (state, retention): (&RecordState<WallTime>, Option<Duration>),
    ) -> Result<bool, Error> {
        let (first, parts) = Header::write(state, retention);
        let kept = state.value.as_ref().map(|value| value.version);
        for (number, part) in parts.iter().enumerate() {
            let Some(kept) = kept else { break };
            let part_path = part_path(path, kept, number);
            let access = self.access();
            match connection
                .create(&part_path, part, Lifetime::Persistent, access)
                .await?
            {
                // The same writer tried before.
                Ok(()) | Err(Code::NODE_EXISTS) => {}
                Err(Code::NO_NODE) => return Ok(false),
                Err(code) => return Err(refused(&part_path, code)),
            }
        }
        let op = Op::SetData(path, &first, version);
        match connection.ask(&op, client::stat).await? {
            Ok(answer) => {
                connection.learn_leader_clock(answer.value);
                self.sweep_parts(connection, path, kept).await?;
                Ok(true)
            }
            Err(Code::BAD_VERSION | Code::NO_NODE) => Ok(false),
            Err(code) => Err(refused(path, code)),
        }
    }

    /// Creates an empty record, and removes some others whose time is over.
    async fn create_record(
        &self,
        connection: &Connection,
        folder: &str,
        path: &str,
    ) -> Result<(), Error> {
        loop {
            match connection
                .create(path, &[], Lifetime::Persistent, self.access())
                .await?
            {
                Ok(()) | Err(Code::NODE_EXISTS) => break,
                Err(Code::NO_NODE) => {
                    self.ensure_folder(connection, folder, Lifetime::Persistent)
                        .await?;
                }
                Err(code) => return Err(refused(path, code)),
            }
        }
        self.sweep_records(connection, folder).await
    }

    /// Removes the parts of values before this version, or of all.
    async fn sweep_parts(
        &self,
        connection: &Connection,
        path: &str,
        kept: Option<Version>,
    ) -> Result<(), Error> {
        let mut batch = connection.batch();
        let names = batch.children(path, false);
        batch.send();
        let Ok(names) = names.answer().await? else {
            return Ok(());
        };
        for name in names.value {
            let of = name
                .rsplit_once('-')
                .and_then(|(of, _)| of.parse::<Version>().ok());
            if kept.is_some() && of >= kept {
                continue;
            }
            // Another writer may do the same.
            let _ = connection.delete(&format!("{path}/{name}")).await?;
        }
        Ok(())
    }

    /// Looks at some records of the folder, and removes those whose time is over. Each new record does
    /// this, so old ones do not pile up.
    async fn sweep_records(&self, connection: &Connection, folder: &str) -> Result<(), Error> {
        let mut batch = connection.batch();
        let names = batch.children(folder, false);
        batch.send();
        let Ok(names) = names.answer().await? else {
            return Ok(());
        };
        let names = names.value;
        for _ in 0..SWEPT.min(names.len()) {
            let pick = self.context.env().entropy.next_u64() % names.len() as u64;
            let path = format!(
                "{folder}/{}",
                names[usize::try_from(pick).unwrap_or_default()]
            );
            let Some(stored) = self.stored(connection, &path).await? else {
                continue;
            };
            let now = self.now(connection, &stored).await?;
            if stored.stat.version > 0 && stored.state.is_over(now) {
                self.sweep_parts(connection, &path, None).await?;
                let _ = connection
                    .ask(&Op::Delete(&path, stored.stat.version), client::nothing)
                    .await?;
            }
        }
        Ok(())
    }
}

/// How often to read a record again whose parts change.
const TRIES: usize = 16;

/// How many records each new one looks at: more than one, so that old ones become fewer.
const SWEPT: usize = 2;

/// Returns when the first part of a record is over.
fn first_end(state: &RecordState<WallTime>) -> Option<WallTime> {
    let seen = state.seen.map(|(_, end)| end);
    let value = state.value.as_ref().map(|value| value.end);
    seen.into_iter().chain(value).min()
}

fn millis(at: WallTime) -> i64 {
    i64::try_from(at.as_micros() / 1000).unwrap_or(i64::MAX)
}

pub(super) fn wall(millis: i64) -> WallTime {
    WallTime::from_micros(
        u64::try_from(millis)
            .unwrap_or_default()
            .saturating_mul(1000),
    )
}

fn part_path(path: &str, version: Version, number: usize) -> String {
    format!("{path}/{version}-{number}")
}

/// The first node of a record: one line, and the value or its beginning.
///
/// The line has the version seen last, the version of the value, the end of the value, and the number of further parts.
/// The end is in microseconds since 1970 or, after a `+`, since the node changed. The node changes with each opening and
/// each write, so its time also says until when the record remembers what it has seen.
struct Header<'a> {
    seen: Option<Version>,
    value: Option<(Version, End)>,
    parts: usize,
    bytes: &'a [u8],
}

enum End {
    At(u64),
    After(u64),
}

impl<'a> Header<'a> {
    fn read(data: &'a [u8]) -> Option<Self> {
        let mut header = Self {
            seen: None,
            value: None,
            parts: 0,
            bytes: data,
        };
        if data.is_empty() {
            return Some(header);
        }
        let split = data.iter().position(|byte| *byte == b'\n')?;
        let line = std::str::from_utf8(&data[..split]).ok()?;
        header.bytes = &data[split + 1..];
        let mut words = line.split(' ');
        header.seen = Some(words.next()?.parse().ok()?);
        let Some(written) = words.next() else {
            return Some(header);
        };
        let end = words.next()?;
        let end = match end.strip_prefix('+') {
            Some(span) => End::After(span.parse().ok()?),
            None => End::At(end.parse().ok()?),
        };
        header.value = Some((written.parse().ok()?, end));
        header.parts = words
            .next()?
            .parse()
            .ok()
            .filter(|parts| *parts <= PARTS_MAX)?;
        Some(header)
    }

    fn stored(&self, stat: Stat, bytes: Vec<u8>) -> Stored {
        let changed = wall(stat.changed_ms).as_micros();
        let after = |span: u64| WallTime::from_micros(changed.saturating_add(span));
        let value = self.value.as_ref().map(|(version, end)| KeptValue {
            version: *version,
            end: match end {
                End::At(at) => WallTime::from_micros(*at),
                End::After(span) => after(*span),
            },
            bytes: Arc::from(bytes),
        });
        let seen = self.seen.map(|seen| (seen, after(micros(RECORD_MEMORY))));
        let state = RecordState { seen, value };
        Stored { state, stat }
    }

    /// Returns the data of the first node and of the others. A new value has a retention.
    fn write(state: &RecordState<WallTime>, retention: Option<Duration>) -> (Vec<u8>, Vec<&[u8]>) {
        let value = state.value.as_ref();
        let seen = state
            .seen
            .map(|(version, _)| version)
            .max(value.map(|value| value.version));
        let seen = seen.map_or(String::new(), |version| version.to_string());
        let Some(value) = value else {
            return (format!("{seen}\n").into_bytes(), Vec::new());
        };
        let end = match retention {
            None => value.end.as_micros().to_string(),
            Some(retention) => format!("+{}", micros(retention)),
        };
        let mut parts = value.bytes.chunks(PART_MAX);
        let first = parts.next().unwrap_or_default();
        let rest: Vec<&[u8]> = parts.collect();
        let line = format!("{seen} {} {end} {}\n", value.version, rest.len());
        ([line.as_bytes(), first].concat(), rest)
    }
}

/// Reads bytes as the first node of a record, for the fuzz target.
#[cfg(any(test, fuzzing))]
pub(super) fn read_any(bytes: &[u8]) {
    if let Some(header) = Header::read(bytes) {
        let _ = header.stored(Stat::default(), header.bytes.to_vec());
    }
}

/// The most further parts that a value has.
const PARTS_MAX: usize = RecordWrite::BYTES_MAX / PART_MAX;

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
