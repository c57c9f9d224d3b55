//! One attempt to take a lock: everything of it that touches a file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use leasehold::clock::BootInstant;
use leasehold::store::{Busy, LockRequest};
use leasehold::{Error, ErrorKind, Fence, Mode};

use crate::directory::Directory;
use crate::failure::failed;
use crate::format::header::{self, Counter, Damage};
use crate::format::holder_record;
use crate::kernel::listener::Watch;
use crate::kernel::lock_file::{self, LockFile, Locking};
use crate::kernel::range_lock;
use crate::locking::contents::{first_owner, read_header};
use crate::locking::held_lock::HeldLock;
use crate::locking::kept_open::KeptOpen;
use crate::locking::occupancy::{self, Occupancy};
use crate::locking::writer_yield::WriterYield;

/// How far an attempt got.
#[derive(Debug)]
pub(crate) enum AttemptProgress {
    /// The lock is held. A waiter keeps the file open.
    Busy(Busy, KeptOpen),
    /// Undecided, because other requests that share the lock are about to take their seats. The caller
    /// continues with this stage soon.
    Later(Stage),
    /// The lock is held. The watch serves the next waiter for the file.
    Granted(HeldLock, Option<Watch>),
}

/// What an attempt does next.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Try, with the file that stayed open since the last try.
    Try(Option<KeptOpen>, WriterYield),
    /// Find room, and draw the fence.
    Draw(Won),
}

/// A file whose `flock` an attempt took.
#[derive(Debug)]
pub(crate) struct Won {
    lock: LockFile,
    /// Reports what happened to the file since the try.
    watch: Option<Watch>,
}

/// Continues the attempt of `request`, at `now`.
///
/// `watch` starts watching a locked file on behalf of a waiter. The attempt then tries the file once
/// more, because the watch reports nothing that happened before.
pub(crate) fn go_on(
    directory: &Directory,
    request: &LockRequest,
    stage: Stage,
    now: BootInstant,
    watch: impl Fn(&Path) -> Option<Watch>,
) -> Result<AttemptProgress, Error> {
    let (kept, writer_yield) = match stage {
        Stage::Try(kept, writer_yield) => (kept, writer_yield),
        Stage::Draw(won) => return draw(directory, request, won),
    };
    let mut kept = kept.map(|open| KeptOpen {
        writer_yield,
        ..open
    });
    let path = directory.lock_file(&request.key);
    for _ in 0..TRIES {
        let open = match kept.take().filter(|kept| kept.is_at(&path)) {
            Some(open) => open,
            None => match lock_file::open(&path, directory.mode_of_files()) {
                Ok(file) => KeptOpen::new(file, writer_yield),
                // Another process made the file at the same moment.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    directory.restore()?;
                    continue;
                }
                Err(error) => return Err(failed("open the lock file", &path, error)),
            },
        };
        let (busy, open) = match take(directory, request, &path, open, now)? {
            None => continue,
            Some(AttemptProgress::Busy(busy, open)) => (busy, open),
            Some(step) => return Ok(step),
        };
        if open.watch.is_none()
            && let Some(watch) = watch(&path)
        {
            let watch = Some(watch);
            kept = Some(KeptOpen { watch, ..open });
            continue;
        }
        return Ok(AttemptProgress::Busy(busy, open));
    }
    let message = format!(
        "{} was removed or replaced {TRIES} times while it was being locked",
        path.display()
    );
    Err(Error::new(ErrorKind::Io, message))
}

/// Tries to take the lock on an open file. Returns `None` if the file is no longer the one under its
/// name.
fn take(
    directory: &Directory,
    request: &LockRequest,
    path: &Path,
    mut open: KeptOpen,
    now: BootInstant,
) -> Result<Option<AttemptProgress>, Error> {
    // Forget earlier notifications before the try: it may miss the cause of any later one.
    open.watch = open.watch.map(Watch::forgetful);
    // Look before taking the `flock`, which others would see for a moment.
    let room = occupancy::look(&open.file, path, request)?;
    let yields = yields(&mut open, request, now);
    if yields.map_err(|error| failed("look at the locks on", path, error))? {
        return Ok(Some(busy(open)));
    }
    if let Occupancy::Taken = room {
        return Ok(Some(busy(open)));
    }
    let failed = |error| failed("lock", path, error);
    match lock_file::lock(open.file, path, request.mode).map_err(failed)? {
        Locking::Won(lock) => {
            let watch = open.watch;
            draw(directory, request, Won { lock, watch }).map(Some)
        }
        Locking::Busy(file) => {
            // Only a writer refuses a request that shares the lock, so a writer has had its turn.
            let writer_yield = WriterYield::done();
            let mut open = KeptOpen {
                file,
                writer_yield,
                ..open
            };
            announce(&mut open, request).map_err(failed)?;
            Ok(Some(busy(open)))
        }
        Locking::Replaced => Ok(None),
    }
}

/// Returns whether `request` shares the lock and yields to a waiting writer.
fn yields(open: &mut KeptOpen, request: &LockRequest, now: BootInstant) -> io::Result<bool> {
    if request.mode == Mode::Exclusive || request.barges {
        return Ok(false);
    }
    Ok(occupancy::is_writer_waiting(&open.file)?
        && open
            .writer_yield
            .yields(occupancy::present(&open.file)?, now))
}

/// Keeps out later requests that share the lock, while `request` waits for the exclusive lock.
fn announce(open: &mut KeptOpen, request: &LockRequest) -> io::Result<()> {
    if request.mode == Mode::Exclusive && request.is_queued() && !open.is_announced {
        occupancy::announce_writer(&open.file)?;
        open.is_announced = true;
    }
    Ok(())
}

fn busy(open: KeptOpen) -> AttemptProgress {
    AttemptProgress::Busy(Busy::by(first_owner(&open.file)), open)
}

/// Continues with a file whose `flock` is won: checks whether there is room, draws the fence, and
/// writes it to disk.
///
/// Several shared holders can be here at once, so a lock of its own protects the counter. This
/// function never waits for that lock: its holder may be stopped, and nothing could stop this thread.
fn draw(directory: &Directory, request: &LockRequest, won: Won) -> Result<AttemptProgress, Error> {
    let lock = &won.lock;
    let failed = |error| failed("lock the counter in", lock.path(), error);
    if !range_lock::try_lock(lock.file(), COUNTER_BYTE).map_err(failed)? {
        return Ok(AttemptProgress::Later(Stage::Draw(won)));
    }
    let seats = match occupancy::look(lock.file(), lock.path(), request)? {
        Occupancy::Room(seats) => seats,
        // The `flock` may have kept out a writer, which now waits for a notification by another
        // holder. So this attempt may not end before it has seen, without the `flock`, that there is
        // such a holder. It tries again, and yields to no writer.
        Occupancy::Taken => {
            let writer_yield = WriterYield::done();
            let open = KeptOpen {
                watch: won.watch,
                ..KeptOpen::new(lock.back_off().map_err(failed)?, writer_yield)
            };
            return Ok(AttemptProgress::Later(Stage::Try(Some(open), writer_yield)));
        }
    };
    let (fence, seat) = next_fence(directory, request, lock, seats)?;
    range_lock::unlock(lock.file(), COUNTER_BYTE).map_err(failed)?;
    let held = HeldLock {
        lock: Arc::new(won.lock),
        mode: request.mode,
        seat,
        fence,
    };
    Ok(AttemptProgress::Granted(held, won.watch))
}

fn next_fence(
    directory: &Directory,
    request: &LockRequest,
    lock: &LockFile,
    seats: Range<u64>,
) -> Result<(Fence, Option<u64>), Error> {
    let (file, path) = (lock.file(), lock.path());
    let bytes = read_header(file).map_err(|error| failed("read", path, error))?;
    let counter = header::read(&bytes, &request.key).map_err(|damage| damaged(path, damage))?;
    let fence = after(counter, request, path)?;
    if counter == Counter::Fresh {
        // Make the name durable before the counter, so that a process that finds a counter need not
        // check the name.
        let synced = directory.sync();
        synced.map_err(|error| failed("sync the lock directory", directory.path(), error))?;
    }
    let written = || {
        occupancy::enter(file, request.mode)?;
        let seat = take_seat(file, request, fence, seats)?;
        write_counter(file, request, &bytes, counter, fence)?;
        file.sync_data()?;
        Ok(seat)
    };
    let seat = written().map_err(|error| failed("write the fence to", path, error))?;
    Ok((fence, seat))
}

fn after(counter: Counter, request: &LockRequest, path: &Path) -> Result<Fence, Error> {
    let fence = Fence::after(Fence::new(counter.value()), request.proposal);
    fence.map_err(|error| match error.kind() {
        ErrorKind::Corrupt => {
            let text = format!("{}: {}. {REMEDY}", path.display(), error.reason());
            Error::new(ErrorKind::Corrupt, text)
        }
        _ => error,
    })
}

/// Writes the holder into the first free one of `seats`, then locks the record to make it valid. The
/// lock on the counter keeps two shared holders from choosing the same seat.
fn take_seat(
    file: &File,
    request: &LockRequest,
    fence: Fence,
    seats: Range<u64>,
) -> io::Result<Option<u64>> {
    for seat in seats {
        let offset = holder_record::offset(seat);
        if !range_lock::is_locked(file, offset)? {
            file.write_all_at(&holder_record::encode(request, fence), offset)?;
            if range_lock::try_lock(file, offset)? {
                return Ok(Some(seat));
            }
        }
    }
    match request.mode {
        // The seat is the permit.
        Mode::Permit(_) => Err(occupancy::foreign_lock()),
        Mode::Exclusive | Mode::Shared => Ok(None),
    }
}

fn write_counter(
    file: &File,
    request: &LockRequest,
    found: &[u8],
    counter: Counter,
    fence: Fence,
) -> io::Result<()> {
    if counter == Counter::Fresh {
        return file.write_all_at(&header::fresh(&request.key, fence.get()), 0);
    }
    if header::named_key(found).as_ref() != Some(&request.key) {
        file.write_all_at(&header::name(&request.key), header::NAME_OFFSET as u64)?;
    }
    let slot = header::slot(&request.key, fence.get());
    file.write_all_at(&slot, counter.next_slot().offset() as u64)
}

fn damaged(path: &Path, damage: Damage) -> Error {
    let path = path.display();
    let (kind, message) = match damage {
        Damage::NoSlot => (
            ErrorKind::Corrupt,
            format!(
                "{path} is damaged, or no lock file: neither of its counters is whole. {REMEDY}"
            ),
        ),
        Damage::OtherKey => (
            ErrorKind::Corrupt,
            format!("{path} keeps the counter of another lock: it was renamed or copied. {REMEDY}"),
        ),
        Damage::Version(version) => (
            ErrorKind::Unsupported,
            format!("{path} has format {version}, of a later version of this program"),
        ),
    };
    Error::new(kind, message)
}

const REMEDY: &str = "Once nobody holds the lock, remove the file: the next fence then follows \
                      from the wall clock";

/// The byte that the lock on the counter covers: any byte where no record begins.
const COUNTER_BYTE: u64 = 0;

/// How often other processes may remove or create a lock file during one attempt.
const TRIES: u32 = 100;
