//! The contract, kept by the memory store and by quorums of memory members.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use leasehold::ambient::Ambient;
use leasehold::{Key, Member, MemoryStore, Quorum, Store};
use leasehold_testkit::contract;
use leasehold_testkit::harness::{Harness, Optional, Suite};

fn main() -> ExitCode {
    contract::main(&[
        Suite {
            name: "memory",
            start: || Arc::new(Memory::new(1)),
            open_at: None,
            is_member: true,
            without: &[Optional::Health],
        },
        Suite {
            name: "memory_quorum",
            start: || Arc::new(Memory::new(5)),
            open_at: None,
            is_member: false,
            without: &[],
        },
    ])
}

#[derive(Debug)]
struct Memory {
    members: Vec<MemoryStore>,
}

impl Memory {
    fn new(count: usize) -> Self {
        let member = |n| MemoryStore::member(format!("memory-{n}"), Ambient::default());
        Self {
            members: (0..count).map(member).collect(),
        }
    }
}

impl Harness for Memory {
    fn open(&self) -> Arc<dyn Store> {
        if let [only] = self.members.as_slice() {
            return Arc::new(only.clone());
        }
        let members = self
            .members
            .iter()
            .map(|member| Arc::new(member.clone()) as Arc<dyn Member>);
        let quorum = Quorum::new(members).expect("a valid set");
        Arc::new(quorum.clock_tolerance(Duration::from_millis(20)))
    }

    fn address(&self) -> String {
        panic!("the locks of this process have no address")
    }

    fn member(&self) -> Arc<dyn Member> {
        Arc::new(self.members[0].clone())
    }

    fn places(&self) -> Vec<Arc<dyn Store>> {
        self.members
            .iter()
            .map(|member| Arc::new(member.clone()) as Arc<dyn Store>)
            .collect()
    }

    fn forget(&self, key: &Key) {
        for member in &self.members {
            member.forget(key);
        }
    }

    fn restart(&self) {
        self.members[0].restart(false);
    }

    fn forget_everything(&self) {
        self.members[0].forget_everything();
    }

    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }
}
