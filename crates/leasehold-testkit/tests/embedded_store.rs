//! A store without a server between it and its data keeps the contract, as a database in files would. The suite cannot break
//! its network, and says so.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use leasehold::Key;
use leasehold::store::{Exclusion, Guarantees, LeaseTerms, Session, SessionContext, Store};
use leasehold_file::FileStore;
use leasehold_testkit::contract;
use leasehold_testkit::harness::{Harness, Optional, Suite};
use tempfile::TempDir;

const SUITES: &[Suite] = &[Suite::new("embedded", || {
    Arc::new(Folder(tempfile::tempdir().expect("a folder")))
})
.in_other_processes(|address| Arc::new(Embedded::at(Path::new(address))))
.without_network("the data is in files")
.without(&[Optional::Admin, Optional::Health])];

fn main() -> ExitCode {
    contract::main(SUITES)
}

/// The locks of a folder, which promise what one server does.
#[derive(Debug)]
struct Embedded(FileStore);

impl Embedded {
    fn at(folder: &Path) -> Self {
        Self(FileStore::open(folder).expect("a folder of locks"))
    }
}

impl fmt::Display for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Store for Embedded {
    fn guarantees(&self) -> Guarantees {
        let mut guarantees = self.0.guarantees();
        guarantees.exclusion = Exclusion::OneServer;
        guarantees
    }

    fn terms(&self) -> LeaseTerms {
        self.0.terms()
    }

    fn open(&self, context: SessionContext) -> Arc<dyn Session> {
        self.0.open(context)
    }
}

#[derive(Debug)]
struct Folder(TempDir);

impl Harness for Folder {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(Embedded::at(self.0.path()))
    }

    fn address_through(&self, _: &[u16]) -> String {
        self.0.path().display().to_string()
    }

    fn forget(&self, key: &Key) {
        let file: PathBuf = Embedded::at(self.0.path()).0.lock_file(key);
        std::fs::remove_file(file).expect("a lock file");
    }
}
