use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::Builder;
use std::time::Duration;

use leasehold::clock::BootInstant;
use leasehold::store::locked;
use tempfile::TempDir;

use super::history::{Entry, History, Hold};

/// The resource that the lock protects: a record that refuses old fences, and a plain record that knows no fences.
/// It records everything that happens. Workers reach it through a Unix socket, independently of the lock.
#[derive(Debug)]
pub struct ProtectedResource {
    folder: TempDir,
    log: Arc<Mutex<AccessLog>>,
}

#[derive(Debug, Default)]
struct AccessLog {
    record: u64,
    plain: u64,
    /// The greatest fence that was accepted.
    greatest: u64,
    entries: Vec<Entry>,
    holds: HashMap<u64, Hold>,
    over: Vec<Hold>,
    refusals: Vec<(usize, String)>,
    /// How long the next holder is asked to stay.
    stay: Option<Duration>,
    /// The fence of the holder that was asked to stay.
    staying: Option<u64>,
    closed: bool,
}

impl ProtectedResource {
    /// Opens a record whose value is 0.
    ///
    /// # Panics
    ///
    /// If the socket or the thread cannot be created.
    pub fn open() -> Self {
        Self::try_open().unwrap_or_else(|error| panic!("the record: {error}"))
    }

    fn try_open() -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("leasehold-resource-")
            .tempdir()?;
        let listener = UnixListener::bind(socket(folder.path()))?;
        let log = Arc::new(Mutex::new(AccessLog::default()));
        let shared = Arc::clone(&log);
        Builder::new().name("resource".into()).spawn(move || {
            for worker in listener.incoming() {
                if locked(&shared).closed {
                    return;
                }
                let log = Arc::clone(&shared);
                let serving = worker.and_then(|worker| {
                    Builder::new().spawn(move || serve(&worker, &log).map_err(drop))
                });
                if serving.is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { folder, log })
    }

    /// Returns the path for [`ResourceClient::connect`].
    pub fn path(&self) -> PathBuf {
        socket(self.folder.path())
    }

    /// Asks the next holder to stay inside for `span`.
    pub fn ask_to_stay(&self, span: Duration) {
        let mut log = locked(&self.log);
        log.stay = Some(span);
        log.staying = None;
    }

    /// Returns the hold that was asked to stay and is still inside.
    pub fn staying(&self) -> Option<Hold> {
        let log = locked(&self.log);
        log.holds.get(&log.staying?).copied()
    }

    /// Returns how often the lock has been granted so far.
    pub fn grants(&self) -> usize {
        let log = locked(&self.log);
        log.holds.len() + log.over.len()
    }

    /// Returns how often it has been granted to one of the workers that `are_meant`.
    pub fn grants_to(&self, are_meant: impl Fn(usize) -> bool) -> usize {
        let log = locked(&self.log);
        let holds = log.over.iter().chain(log.holds.values());
        holds.filter(|hold| are_meant(hold.worker)).count()
    }

    /// Returns everything that has happened so far.
    pub fn history(&self) -> History {
        let log = locked(&self.log);
        History {
            holds: log.over.iter().chain(log.holds.values()).copied().collect(),
            entries: log.entries.clone(),
            refusals: log.refusals.clone(),
        }
    }
}

impl Drop for ProtectedResource {
    fn drop(&mut self) {
        locked(&self.log).closed = true;
        // Wakes the thread that accepts. If this fails, that thread is gone already.
        let _ = UnixStream::connect(self.path());
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("resource.sock")
}

/// Answers one worker, line by line, until it is gone.
fn serve(worker: &UnixStream, log: &Mutex<AccessLog>) -> io::Result<()> {
    let mut answers = worker;
    for line in BufReader::new(worker).lines() {
        let line = line?;
        let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let mut log = locked(log);
        let answer = if verb == "refused" {
            let (worker, reason) = rest.split_once(' ').unwrap_or((rest, ""));
            let worker = worker.parse().map_err(io::Error::other)?;
            log.refusals.push((worker, reason.to_owned()));
            0
        } else {
            let numbers: Result<Vec<u64>, _> = rest.split(' ').map(str::parse).collect();
            let numbers = numbers.map_err(io::Error::other)?;
            let outcome = log.take(verb, &numbers);
            outcome.ok_or_else(|| io::Error::other(format!("not a request: {line:?}")))?
        };
        drop(log);
        writeln!(answers, "{answer}")?;
    }
    Ok(())
}

/// The answer of a record that refuses a fence.
const STALE: u64 = u64::MAX;

impl AccessLog {
    fn take(&mut self, verb: &str, numbers: &[u64]) -> Option<u64> {
        Some(match (verb, numbers) {
            ("granted", &[worker, fence, asked, granted]) => {
                let hold = Hold {
                    worker: usize::try_from(worker).ok()?,
                    fence,
                    asked: BootInstant::from_nanos(asked),
                    granted: BootInstant::from_nanos(granted),
                    valid_until: None,
                    left: None,
                };
                if let Some(earlier) = self.holds.insert(fence, hold) {
                    self.over.push(earlier);
                }
                let stay = self.stay.take();
                if stay.is_some() {
                    self.staying = Some(fence);
                }
                let millis = stay.unwrap_or_default().as_millis();
                u64::try_from(millis).ok()?
            }
            ("left", &[fence, valid_until, left]) => {
                let mut hold = self.holds.remove(&fence)?;
                hold.valid_until = (valid_until > 0).then(|| BootInstant::from_nanos(valid_until));
                hold.left = Some(BootInstant::from_nanos(left));
                self.over.push(hold);
                0
            }
            ("read", &[fence]) => {
                let accepted = self.admit(fence);
                self.entries.push(Entry::Read { fence, accepted });
                if accepted { self.record } else { STALE }
            }
            ("write", &[fence, base, value]) => {
                let accepted = self.admit(fence);
                self.entries.push(Entry::Write {
                    fence,
                    base,
                    value,
                    accepted,
                });
                if accepted {
                    self.record = value;
                }
                if accepted { value } else { STALE }
            }
            ("plain-read", &[_fence]) => self.plain,
            ("plain-write", &[base, value]) => {
                self.entries.push(Entry::PlainWrite { base, value });
                self.plain = value;
                value
            }
            _ => return None,
        })
    }

    fn admit(&mut self, fence: u64) -> bool {
        let accepted = fence >= self.greatest;
        self.greatest = self.greatest.max(fence);
        accepted
    }
}

/// A worker's connection to the [`ProtectedResource`]. Each call waits until the resource has recorded it.
#[derive(Debug)]
pub struct ResourceClient {
    stream: BufReader<UnixStream>,
}

impl ResourceClient {
    /// Connects to the resource at `path`.
    ///
    /// # Errors
    ///
    /// Those of the operating system, here and below: the resource is gone.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let stream = BufReader::new(UnixStream::connect(path)?);
        Ok(Self { stream })
    }

    /// Reports that `worker` was granted the lock. Returns how long it must stay inside, which is zero
    /// without a request to stay.
    ///
    /// # Errors
    ///
    /// The resource is gone.
    pub fn granted(
        &mut self,
        worker: usize,
        fence: u64,
        asked: BootInstant,
        granted: BootInstant,
    ) -> io::Result<Duration> {
        let (asked, granted) = (asked.as_nanos(), granted.as_nanos());
        let millis = self.ask(&format!("granted {worker} {fence} {asked} {granted}"))?;
        Ok(Duration::from_millis(millis))
    }

    /// Reports that the holder of `fence` has finished, and until when its guard claimed to be valid.
    ///
    /// # Errors
    ///
    /// The resource is gone.
    pub fn left(
        &mut self,
        fence: u64,
        valid_until: Option<BootInstant>,
        left: BootInstant,
    ) -> io::Result<()> {
        let valid_until = valid_until.map_or(0, BootInstant::as_nanos);
        let left = left.as_nanos();
        self.ask(&format!("left {fence} {valid_until} {left}"))?;
        Ok(())
    }

    /// Reads the record; `None` if the fence is too old.
    ///
    /// # Errors
    ///
    /// The resource is gone.
    pub fn read(&mut self, fence: u64) -> io::Result<Option<u64>> {
        let value = self.ask(&format!("read {fence}"))?;
        Ok((value != STALE).then_some(value))
    }

    /// Writes `base` + 1 into the record, where `base` is the value that was read. Returns whether it was
    /// accepted.
    ///
    /// # Errors
    ///
    /// The resource is gone.
    pub fn add_one(&mut self, fence: u64, base: u64) -> io::Result<bool> {
        let value = base + 1;
        Ok(self.ask(&format!("write {fence} {base} {value}"))? != STALE)
    }

    /// Reads the plain record, which knows no fences.
    ///
    /// # Errors
    ///
    /// The resource is gone.
    pub fn plain_read(&mut self) -> io::Result<u64> {
        self.ask("plain-read 0")
    }

    /// Writes `base` + 1 into the plain record.
    ///
    /// # Errors
    ///
    /// The resource is gone.
    pub fn plain_add_one(&mut self, base: u64) -> io::Result<()> {
        let value = base + 1;
        self.ask(&format!("plain-write {base} {value}"))?;
        Ok(())
    }

    /// Reports that `worker` was not granted the lock, and why.
    ///
    /// # Errors
    ///
    /// The resource is gone.
    pub fn refused(&mut self, worker: usize, reason: &str) -> io::Result<()> {
        let reason = reason.replace('\n', " ");
        self.ask(&format!("refused {worker} {reason}"))?;
        Ok(())
    }

    fn ask(&mut self, line: &str) -> io::Result<u64> {
        writeln!(self.stream.get_mut(), "{line}")?;
        let mut answer = String::new();
        if self.stream.read_line(&mut answer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        answer.trim().parse().map_err(io::Error::other)
    }
}
