//! A store with only the required methods keeps the contract.

mod store;

use std::process::ExitCode;
use std::sync::Arc;

use leasehold::Key;
use leasehold::store::{Store, locked};
use leasehold_testkit::contract;
use leasehold_testkit::harness::{Harness, Optional, Suite};

use store::MinimalStore;

const SUITES: &[Suite] =
    &[Suite::new("minimal", || Arc::new(Minimal::default())).without(Optional::ALL)];

fn main() -> ExitCode {
    contract::main(SUITES)
}

#[derive(Debug, Default)]
struct Minimal(MinimalStore);

impl Harness for Minimal {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }

    fn forget(&self, key: &Key) {
        locked(&self.0.locks).remove(key);
    }
}
