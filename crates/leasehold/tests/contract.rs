//! The contract, kept by the memory store.

use std::process::ExitCode;
use std::sync::Arc;

use leasehold::Key;
use leasehold::memory::MemoryStore;
use leasehold::store::Store;
use leasehold_testkit::contract;
use leasehold_testkit::harness::{Harness, Optional, Suite};

const SUITES: &[Suite] =
    &[Suite::new("memory", || Arc::new(Memory(MemoryStore::new()))).without(&[Optional::Health])];

fn main() -> ExitCode {
    contract::main(SUITES)
}

#[derive(Debug)]
struct Memory(MemoryStore);

impl Harness for Memory {
    fn open(&self) -> Arc<dyn Store> {
        self.0.clone().into()
    }

    fn forget(&self, key: &Key) {
        self.0.forget(key);
    }
}
