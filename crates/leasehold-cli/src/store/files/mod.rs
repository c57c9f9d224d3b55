//! Lock files in a folder of this machine.

mod doctor;

use std::os::fd::OwnedFd;
use std::time::Duration;

use leasehold::look::Owner;
use leasehold_file::FileStore;
use leasehold_stores::Folder;

use crate::output::failure::Failure;
use crate::output::report::Report;
#[cfg(feature = "redis")]
use crate::store::Quorum;
use crate::store::addresses::Addresses;
use crate::store::backend::{Backend, Cleaned, Descriptors, Opened, Prepared};

/// The folder with the lock files.
#[derive(Debug)]
pub(super) enum LockFiles<'a> {
    /// That of this machine and user, by request.
    Local,
    /// The same, by default.
    Unsaid,
    /// The folder that a URL names, the only one of the addresses.
    Folder(Folder, &'a Addresses),
}

impl LockFiles<'_> {
    fn files(&self) -> Result<FileStore, Failure> {
        match self {
            Self::Local | Self::Unsaid => Ok(FileStore::open_default()?),
            Self::Folder(folder, addresses) => addresses.blame(folder.open()),
        }
    }
}

impl Backend for LockFiles<'_> {
    fn open(&self) -> Result<Opened, Failure> {
        let files = self.files()?;
        Ok(Opened {
            members: vec![files.to_string()],
            store: files.clone().into(),
            reader: None,
            descriptors: Some(Box::new(files)),
        })
    }

    fn examine(&self, _limit: Duration) -> Result<Report, Failure> {
        let facts = match self {
            Self::Local | Self::Unsaid => FileStore::options().examine_default()?,
            Self::Folder(folder, addresses) => addresses.blame(folder.examine())?,
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

    fn prepare(&self) -> Result<Prepared, Failure> {
        if let Self::Unsaid = self {
            return Err(Failure::usage(
                "no store is configured, and the default, files of this machine, needs no initialization; name a store, for \
                 example --store redis://a,redis://b,redis://c",
            ));
        }
        Ok(Prepared::nothing(&self.files()?))
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
