//! The contract, kept by the memory store.

use std::process::ExitCode;
use std::sync::Arc;

use leasehold::store::Store;
use leasehold::{Key, MemoryStore};
use leasehold_testkit::contract;
use leasehold_testkit::harness::{Harness, Optional, Suite};

fn main() -> ExitCode {
    contract::main(&[Suite {
        name: "memory",
        start: || Arc::new(Memory(MemoryStore::new())),
        open_at: None,
        without: &[Optional::Health],
    }])
}

#[derive(Debug)]
struct Memory(MemoryStore);

impl Harness for Memory {
    fn open(&self) -> Arc<dyn Store> {
        self.0.clone().into()
    }

    fn address(&self) -> String {
        panic!("the locks of this process have no address")
    }

    fn places(&self) -> Vec<Arc<dyn Store>> {
        vec![self.open()]
    }

    fn forget(&self, key: &Key) {
        self.0.forget(key);
    }

    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }
}
