//! The contract, kept by the file store.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use leasehold::Key;
use leasehold::store::Store;
use leasehold_file::FileStore;
use leasehold_testkit::contract;
use leasehold_testkit::harness::{Harness, Optional, Suite};
use tempfile::TempDir;

const SUITES: &[Suite] = &[Suite::new("file", || {
    Arc::new(Folder(tempfile::tempdir().expect("a folder")))
})
.in_other_processes(|address| open(Path::new(address)))
.without(&[Optional::Admin, Optional::Health])];

fn main() -> ExitCode {
    contract::main(SUITES)
}

fn open(folder: &Path) -> Arc<dyn Store> {
    FileStore::open(folder).expect("a folder of locks").into()
}

#[derive(Debug)]
struct Folder(TempDir);

impl Harness for Folder {
    fn open(&self) -> Arc<dyn Store> {
        open(self.0.path())
    }

    fn address_through(&self, _: &[u16]) -> String {
        self.0.path().to_str().expect("a path in UTF-8").to_owned()
    }

    fn forget(&self, key: &Key) {
        let store = FileStore::open(self.0.path()).expect("a folder of locks");
        std::fs::remove_file(store.lock_file(key)).expect("a lock file");
    }
}
