use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold::Fence;
use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use leasehold::env::{Entropy as _, SystemEntropy};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, Flock, FlockArg, OFlag};
use nix::unistd::{AccessFlags, faccessat};

use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;

/// A file that keeps the greatest fence so far, as a decimal number in one line.
///
/// The file is never written in place. A new file replaces it, so that it is complete at every moment,
/// also after a power cut. A process holds the `flock` of the current file while it replaces it. If
/// another file has the name by then, the process begins again.
#[derive(Debug)]
pub(super) struct HighWater {
    path: PathBuf,
    folder: PathBuf,
    name: OsString,
}

/// Whether a fence passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It passes. The greatest fence before this call is `before`.
    Passes { before: Option<Fence> },
    /// It is refused, because this greater fence was shown before.
    OlderThan(Fence),
}

/// The pause between two attempts to get the `flock`.
const PAUSE: Duration = Duration::from_millis(5);

/// More bytes than any number has.
const LENGTH_MAX: u64 = 64;

impl HighWater {
    /// The file at `path`, or the target of that link. Opens nothing.
    pub(super) fn at(path: &Path) -> Result<Self, Failure> {
        let refuse = |error| failed("find", path, &error);
        let path = match path.canonicalize() {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if path.is_symlink() {
                    return Err(of_file(
                        path,
                        "it is a link to a missing file; create that file or remove the link",
                    ));
                }
                let Some(name) = path.file_name() else {
                    let text = format!(
                        "--high-water {:?} is not the name of a file",
                        path.display()
                    );
                    return Err(Failure::usage(text));
                };
                let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
                let folder = folder.unwrap_or(Path::new(".")).canonicalize();
                folder.map_err(refuse)?.join(name)
            }
            Err(error) => return Err(refuse(error)),
        };
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(of_file(&path, "it is a folder; name a file"));
        };
        Ok(Self {
            folder: folder.into(),
            name: name.into(),
            path: path.clone(),
        })
    }

    /// Checks `fence`, and remembers it unless a greater one was shown. Waits for other checks of the
    /// same file, at most for `wait_max`.
    pub(super) async fn check(&self, fence: Fence, wait_max: Duration) -> Result<Verdict, Failure> {
        let end = SystemClock.now() + wait_max;
        loop {
            match self.open()? {
                Some(file) => {
                    if let Some(standing) = self.lock(file, end).await? {
                        return self.show(&standing, fence);
                    }
                }
                None => {
                    if self.make(fence)? {
                        return Ok(Verdict::Passes { before: None });
                    }
                }
            }
            self.check_patience(end)?;
        }
    }

    fn open(&self) -> Result<Option<File>, Failure> {
        let mut options = OpenOptions::new();
        // Opening a pipe without a writer would block.
        options.read(true).custom_flags(OFlag::O_NONBLOCK.bits());
        match options.open(&self.path) {
            Ok(file) => {
                let about = file
                    .metadata()
                    .map_err(|error| self.failed("read", &error))?;
                if !about.is_file() {
                    return Err(of_file(&self.path, "it is not a regular file"));
                }
                Ok(Some(file))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("read", &error)),
        }
    }

    /// Locks `file` for this process. `None` if another file has replaced it.
    async fn lock(&self, mut file: File, end: BootInstant) -> Result<Option<Flock<File>>, Failure> {
        loop {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(locked) => return Ok(self.is_standing(&locked)?.then_some(locked)),
                Err((unlocked, Errno::EWOULDBLOCK | Errno::EINTR)) => file = unlocked,
                Err((_, errno)) => return Err(self.failed("lock", &errno.into())),
            }
            self.check_patience(end)?;
            let next = SystemClock.now() + PAUSE;
            SystemClock.sleep_until(next).await;
        }
    }

    fn check_patience(&self, end: BootInstant) -> Result<(), Failure> {
        if SystemClock.now() < end {
            return Ok(());
        }
        let why = "timed out waiting for another check of this file; that process may be stopped";
        Err(of_file(&self.path, why))
    }

    fn is_standing(&self, file: &File) -> Result<bool, Failure> {
        let ours = file
            .metadata()
            .map_err(|error| self.failed("read", &error))?;
        match fs::metadata(&self.path) {
            Ok(theirs) => Ok((ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.failed("read", &error)),
        }
    }

    fn show(&self, standing: &File, fence: Fence) -> Result<Verdict, Failure> {
        let mut bytes = Vec::new();
        let read = standing.take(LENGTH_MAX).read_to_end(&mut bytes);
        read.map_err(|error| self.failed("read", &error))?;
        // A longer file was not read completely, so the number could be wrong.
        let is_whole = (bytes.len() as u64) < LENGTH_MAX;
        let greatest = is_whole.then(|| parse(&bytes)).flatten();
        let Some(greatest) = greatest else {
            let text = format!(
                "high-water file {} is damaged: it must contain one number of at least 1; write the \
                 greatest fence that may have been used into it",
                self.path.display()
            );
            return Err(Failure::new(ExitCode::CORRUPT, text));
        };
        if fence < greatest {
            return Ok(Verdict::OlderThan(greatest));
        }
        let kept = if fence == greatest {
            // The process that wrote it may have died before it synced the file.
            standing.sync_all().and_then(|()| self.sync_folder())
        } else {
            self.replace(standing, fence)
        };
        kept.map_err(|error| self.failed("write", &error))?;
        Ok(Verdict::Passes {
            before: Some(greatest),
        })
    }

    /// Replaces `standing`, which this process has locked, with a file that contains `fence`.
    fn replace(&self, standing: &File, fence: Fence) -> io::Result<()> {
        // A rename works even if the file is read-only, but a read-only file should not change.
        faccessat(AT_FDCWD, &self.path, AccessFlags::W_OK, AtFlags::AT_EACCESS)?;
        let old = standing.metadata()?;
        // Only the holder of the lock uses this name. An existing file is left over.
        let next = self.sibling(".leasehold-next");
        match fs::remove_file(&next) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let replaced = (|| {
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&next)?;
            let new = file.metadata()?;
            if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
                fchown(&file, Some(old.uid()), Some(old.gid()))?;
            }
            file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777))?;
            write(&file, fence)?;
            fs::rename(&next, &self.path)
        })();
        if replaced.is_err() {
            let _ = fs::remove_file(&next);
        }
        replaced.and_then(|()| self.sync_folder())
    }

    /// Creates the file with `fence` in it. False if another process created it first.
    fn make(&self, fence: Fence) -> Result<bool, Failure> {
        let number = SystemEntropy.next_u64();
        let next = self.sibling(&format!(".leasehold-{number:016x}"));
        let made = (|| {
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&next)?;
            write(&file, fence)?;
            fs::hard_link(&next, &self.path)
        })();
        let _ = fs::remove_file(&next);
        match made.and_then(|()| self.sync_folder()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(self.failed("create", &error)),
        }
    }

    /// A hidden name in the same folder that ends in `suffix`.
    fn sibling(&self, suffix: &str) -> PathBuf {
        let mut name = OsString::from(".");
        name.push(&self.name);
        name.push(suffix);
        self.folder.join(name)
    }

    /// Syncs the folder, so that a new name in it survives a power cut.
    fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }

    fn failed(&self, action: &str, error: &io::Error) -> Failure {
        failed(action, &self.path, error)
    }
}

fn write(mut file: &File, fence: Fence) -> io::Result<()> {
    file.write_all(format!("{fence}\n").as_bytes())?;
    file.sync_all()
}

/// The number in the file, if it contains nothing else. An empty file was cut off, so no fence may
/// pass.
fn parse(bytes: &[u8]) -> Option<Fence> {
    let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = is_number
        .then(|| std::str::from_utf8(text).ok())
        .flatten()?;
    Fence::new(text.parse().ok()?)
}

fn failed(action: &str, path: &Path, error: &io::Error) -> Failure {
    let text = format!(
        "cannot {action} the high-water file {}: {error}",
        path.display()
    );
    Failure::new(ExitCode::IO, text)
}

fn of_file(path: &Path, why: &str) -> Failure {
    let text = format!("high-water file {}: {why}", path.display());
    Failure::new(ExitCode::IO, text)
}

#[cfg(test)]
mod tests;
