//! Lock files in a folder of this machine.

mod doctor;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use leasehold::store::Owner;
use leasehold_file::{DirectoryFacts, FileStore, FileStoreOptions};

use crate::config::Addresses;
use crate::output::failure::Failure;
use crate::output::report::Report;
#[cfg(feature = "redis")]
use crate::store::Quorum;
use crate::store::backend::{Backend, Cleaned, Descriptors, Opened};

/// The folder with the lock files.
#[derive(Debug)]
pub(super) enum LockFiles<'a> {
    /// That of this machine and user, by request.
    Local,
    /// The same, by default.
    Unsaid,
    /// The folder that this URL names, the only one of the addresses: `file:/folder` or `file:///folder`, with an
    /// absolute path and optionally `?unsafe_fs=1`.
    Folder(&'a str, &'a Addresses),
}

impl LockFiles<'_> {
    fn files(&self) -> Result<FileStore, Failure> {
        match self {
            Self::Local | Self::Unsaid => Ok(FileStore::open_default()?),
            Self::Folder(url, addresses) => addresses.blame(open_files(url)),
        }
    }
}

impl Backend for LockFiles<'_> {
    fn open(&self) -> Result<Opened, Failure> {
        let files = self.files()?;
        Ok(Opened {
            members: vec![files.to_string()],
            store: files.clone().into(),
            descriptors: Some(Box::new(files)),
        })
    }

    fn examine(&self) -> Result<Report, Failure> {
        let facts = match self {
            Self::Local | Self::Unsaid => FileStore::options().examine_default()?,
            Self::Folder(url, addresses) => addresses.blame(examine_files(url))?,
        };
        Ok(doctor::report(&facts))
    }

    fn remove_unused(&self, unused_for: Duration, dry: bool) -> Result<Cleaned, Failure> {
        let cleaned = self.files()?.remove_unused(unused_for, dry)?;
        Ok(Cleaned {
            removed: cleaned.removed,
            kept: cleaned.kept,
        })
    }

    #[cfg(feature = "redis")]
    fn quorum(&self) -> Result<Quorum, Failure> {
        let what = match self {
            Self::Local => "--local uses files of this machine",
            Self::Unsaid => "no store is configured; the default is files of this machine",
            Self::Folder(..) => "the store is a folder",
        };
        Err(Failure::usage(format!(
            "{what}, which has no servers; name them, for example --store \
             redis://a,redis://b,redis://c"
        )))
    }
}

impl Descriptors for FileStore {
    fn descriptor(&self, owner: Owner) -> Option<OwnedFd> {
        self.descriptor(owner)
    }
}

pub(super) fn is_file(url: &str) -> bool {
    url.starts_with(FILE)
}

fn open_files(url: &str) -> Result<FileStore, Failure> {
    let (path, options) = file_options(url)?;
    Ok(options.open(path)?)
}

fn examine_files(url: &str) -> Result<DirectoryFacts, Failure> {
    let (path, options) = file_options(url)?;
    Ok(options.examine(path)?)
}

fn file_options(url: &str) -> Result<(PathBuf, FileStoreOptions), Failure> {
    let (path, unsafe_fs) = file_path(url)?;
    // The folder itself is created. A missing parent is more likely a typo.
    if let Some(parent) = path.parent().filter(|parent| !parent.exists()) {
        return Err(Failure::usage(format!(
            "store URL {url:?}: there is no folder {}; create it, or fix the path",
            parent.display()
        )));
    }
    Ok((path, FileStore::options().unsafe_fs(unsafe_fs)))
}

pub(crate) fn file_path(url: &str) -> Result<(PathBuf, bool), Failure> {
    let refuse = |rule: &str| {
        Failure::usage(format!(
            "store URL {url:?}: {rule}; expected file:///folder or file:///folder?unsafe_fs=1"
        ))
    };
    let rest = url.strip_prefix(FILE).unwrap_or(url);
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    let unsafe_fs = match query {
        None | Some("unsafe_fs=0") => false,
        Some("unsafe_fs=1") => true,
        Some(_) => return Err(refuse("unknown parameter")),
    };
    let path = match path.strip_prefix("//") {
        // A host between the slashes would be another machine.
        Some(path) if !path.starts_with('/') => return Err(refuse("it names a host")),
        Some(path) => path,
        None => path,
    };
    if !path.starts_with('/') {
        return Err(refuse("the path of the folder is not absolute"));
    }
    if path.contains('%') {
        return Err(refuse("the path of the folder must not be percent-encoded"));
    }
    Ok((path.into(), unsafe_fs))
}

const FILE: &str = "file:";
