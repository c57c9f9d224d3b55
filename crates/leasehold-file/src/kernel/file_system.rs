//! Which file systems keep the promises of `flock(2)` and of locks on bytes.

use std::io;
use std::path::Path;

use leasehold::{Error, ErrorKind};

#[cfg(target_vendor = "apple")]
#[path = "apple_file_systems.rs"]
mod kinds;
#[cfg(target_os = "linux")]
#[path = "linux_file_systems.rs"]
mod kinds;

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileSystem {
    kind: kinds::FileSystemType,
}

impl FileSystem {
    /// The file system that `path`, which must exist, lies on.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let kind = kinds::of(&nix::sys::statfs::statfs(path)?);
        Ok(Self { kind })
    }

    /// Refuses a file system that is not known to be local. There, `flock` may exclude only the
    /// processes of one machine, or nothing at all, and would still appear to work.
    pub(crate) fn require_local(self, path: &Path) -> Result<(), Error> {
        if self.is_local() {
            return Ok(());
        }
        let message = format!(
            "{} lies on {}, which is not known to be a local file system: locks there may exclude \
             nobody. Choose a local directory, or override with ?unsafe_fs=1",
            path.display(),
            self.name()
        );
        Err(Error::new(ErrorKind::Unsupported, message))
    }

    /// Returns whether the counters of fences outlive a boot. A file system in memory forgets them.
    pub(crate) fn outlives_a_boot(self) -> bool {
        !matches!(kinds::local_name(self.kind), Some("tmpfs" | "ramfs"))
    }

    /// Returns whether this machine's kernel is known to be the only one that uses it. Only then does the
    /// kernel report each file that is closed.
    pub(crate) fn is_local(self) -> bool {
        kinds::local_name(self.kind).is_some()
    }

    pub(crate) fn name(self) -> String {
        kinds::local_name(self.kind).map_or_else(|| kinds::other_name(self.kind), str::to_owned)
    }
}
