//! The directory of the lock files, and the record files in it.

pub(crate) mod record_file;

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use leasehold::{Error, ErrorKind, Key};
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::{AccessFlags, faccessat, geteuid};

use crate::failure::failed;
use crate::format::file_name;
use crate::kernel::file_system::FileSystem;

/// The directory of the lock files, checked.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    rules: Rules,
    file_system: FileSystem,
    mode_of_files: u32,
}

/// What a directory must be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    /// Accepts any file system, even one where `flock` may exclude nothing.
    pub(crate) unsafe_fs: bool,
    /// The directory belongs to this user alone: no other user can remove or replace a lock file.
    pub(crate) private: bool,
}

impl Directory {
    /// Makes the directory if it is missing, and checks that locks can live in it.
    pub(crate) fn prepare(path: &Path, rules: Rules) -> Result<Self, Error> {
        let path = std::path::absolute(path).map_err(|error| {
            let message = format!("lock directory {path:?} is no path: {error}");
            Error::new(ErrorKind::InvalidInput, message)
        })?;
        // Check before making anything, so that a refusal leaves nothing behind.
        let existing = path.ancestors().find(|path| path.exists());
        let existing = existing.unwrap_or(Path::new("/"));
        let file_system = FileSystem::of(existing)
            .map_err(|error| failed("find the file system of", existing, error))?;
        if !rules.unsafe_fs {
            file_system.require_local(&path)?;
        }
        if existing != path {
            make(&path)?;
        }
        if rules.private {
            require_private(&path)?;
        }
        let usable = AccessFlags::R_OK | AccessFlags::W_OK | AccessFlags::X_OK;
        let metadata = fs::metadata(&path).map_err(|error| unusable(&path, error))?;
        if !metadata.is_dir() {
            return Err(not_a_directory(&path));
        }
        require_access(&path, usable).map_err(|error| unusable(&path, error))?;
        Ok(Self {
            // The working directory may change, and so may a link on the way.
            path: path
                .canonicalize()
                .map_err(|error| unusable(&path, error))?,
            rules,
            file_system,
            mode_of_files: mode_of_files(metadata.mode()),
        })
    }

    /// Makes the directory again after it was removed.
    pub(crate) fn restore(&self) -> Result<(), Error> {
        Self::prepare(&self.path, self.rules).map(drop)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file that locks `key`.
    pub(crate) fn lock_file(&self, key: &Key) -> PathBuf {
        self.path.join(file_name::of_key(key))
    }

    pub(crate) fn file_system(&self) -> FileSystem {
        self.file_system
    }

    /// Returns the permissions of a new lock file.
    pub(crate) fn mode_of_files(&self) -> u32 {
        self.mode_of_files
    }

    /// Returns once the names of files made before would survive a power failure.
    pub(crate) fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

/// Refuses a path that the effective user may not use in these ways.
pub(crate) fn require_access(path: &Path, ways: AccessFlags) -> io::Result<()> {
    Ok(faccessat(AT_FDCWD, path, ways, AtFlags::AT_EACCESS)?)
}

/// Makes a directory that only its owner can write to. All users may read that of root.
fn make(path: &Path) -> Result<(), Error> {
    let mode = if geteuid().is_root() { 0o755 } else { 0o700 };
    let made = DirBuilder::new().recursive(true).mode(mode).create(path);
    made.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => not_a_directory(path),
        _ => failed("make the lock directory", path, error),
    })?;
    // Only possible if the parent can be read. If the directory is lost, it is made anew, and the
    // wall clock carries the fences on.
    if let Some(parent) = path.parent() {
        let _ = File::open(parent).and_then(|parent| parent.sync_all());
    }
    Ok(())
}

/// Returns the permissions of a lock file: users who can create locks here can also take them. Other
/// users may not even open the file to read, because that is enough to hold it by `flock(1)`.
fn mode_of_files(mode_of_directory: u32) -> u32 {
    let of_group = if mode_of_directory & 0o020 != 0 {
        0o060
    } else {
        0
    };
    let of_others = if mode_of_directory & 0o002 != 0 {
        0o006
    } else {
        0
    };
    0o600 | of_group | of_others
}

/// Refuses a directory that other users can tamper with. In a folder that all users can write to,
/// such as `/run/lock`, another user may have made a directory or a link in place of ours.
fn require_private(path: &Path) -> Result<(), Error> {
    let metadata = fs::symlink_metadata(path).map_err(|error| unusable(path, error))?;
    let us = geteuid().as_raw();
    let flaw = if metadata.is_symlink() {
        "is a symbolic link".to_owned()
    } else if !metadata.is_dir() {
        return Err(not_a_directory(path));
    } else if metadata.uid() != us {
        format!("belongs to user {}, not to user {us}", metadata.uid())
    } else if metadata.mode() & 0o022 != 0 {
        format!(
            "has mode {:03o}: others may write to it",
            metadata.mode() & 0o777
        )
    } else {
        return Ok(());
    };
    let message = format!(
        "lock directory {} {flaw}, so that others could take locks away: remove it, or name \
         another directory",
        path.display()
    );
    Err(Error::new(ErrorKind::Refused, message))
}

fn unusable(path: &Path, error: io::Error) -> Error {
    failed("use the lock directory", path, error)
}

fn not_a_directory(path: &Path) -> Error {
    let message = format!(
        "lock directory {}: it, or a part of it, is not a directory",
        path.display()
    );
    Error::new(ErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const PRIVATE: Rules = Rules {
        unsafe_fs: false,
        private: true,
    };

    #[test]
    fn file_mode_follows_the_directory() {
        assert_eq!(mode_of_files(0o755), 0o600);
        assert_eq!(mode_of_files(0o700), 0o600);
        assert_eq!(mode_of_files(0o2775), 0o660);
        assert_eq!(mode_of_files(0o1777), 0o666);
    }

    #[test]
    fn new_directory_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        let directory = Directory::prepare(&path, PRIVATE).unwrap();
        assert_eq!(directory.path(), path.canonicalize().unwrap());
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o022, 0, "{mode:o}");
        fs::remove_dir(&path).unwrap();
        directory.restore().unwrap();
        assert!(path.is_dir());
    }

    #[test]
    fn writable_private_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let error = Directory::prepare(dir.path(), PRIVATE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("has mode 777"), "{error}");
        assert!(Directory::prepare(dir.path(), Rules::default()).is_ok());
    }

    #[test]
    fn private_directory_behind_a_foreign_link_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        fs::create_dir(&target).unwrap();
        symlink(&target, &link).unwrap();
        let error = Directory::prepare(&link, PRIVATE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("is a symbolic link"), "{error}");
        assert!(Directory::prepare(&link, Rules::default()).is_ok());
    }

    #[test]
    fn what_is_no_directory_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let dangling = dir.path().join("dangling");
        symlink(dir.path().join("nowhere"), &dangling).unwrap();
        for path in [file.clone(), file.join("below"), dangling] {
            for rules in [Rules::default(), PRIVATE] {
                let error = Directory::prepare(&path, rules).unwrap_err();
                assert!(
                    error.to_string().contains(&*path.to_string_lossy()),
                    "{error}"
                );
            }
            let error = Directory::prepare(&path, Rules::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        }
        let empty = Directory::prepare(Path::new(""), Rules::default()).unwrap_err();
        assert_eq!(empty.kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn foreign_file_system_is_refused_before_any_change() {
        let error = Directory::prepare(Path::new("/proc/locks.d/x"), PRIVATE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let text = error.to_string();
        assert!(
            text.contains("procfs") && text.contains("?unsafe_fs=1"),
            "{text}"
        );
        let overridden = Rules {
            unsafe_fs: true,
            private: false,
        };
        let error = Directory::prepare(Path::new("/proc/locks.d/x"), overridden).unwrap_err();
        assert_ne!(error.kind(), ErrorKind::Unsupported);
    }
}
