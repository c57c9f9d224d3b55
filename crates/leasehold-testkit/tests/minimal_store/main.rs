//! A store with only the required methods keeps the contract. It is a template for new stores.

mod store;

use std::process::ExitCode;
use std::sync::Arc;

use leasehold::Key;
use leasehold::store::Store;
use leasehold_testkit::contract;
use leasehold_testkit::harness::{Harness, Optional, Suite};

use store::MinimalStore;

fn main() -> ExitCode {
    contract::main(&[Suite {
        name: "minimal",
        start: || Arc::new(Minimal::default()),
        // The locks live in one process; another process cannot reach them.
        open_at: None,
        without: &Optional::ALL,
    }])
}

#[derive(Debug, Default)]
struct Minimal(MinimalStore);

impl Harness for Minimal {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }

    fn address(&self) -> String {
        panic!("the locks of this process have no address")
    }

    fn places(&self) -> Vec<Arc<dyn Store>> {
        vec![self.open()]
    }

    fn forget(&self, key: &Key) {
        self.0.locks().remove(key);
    }

    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }
}
