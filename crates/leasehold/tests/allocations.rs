//! A free lock costs few allocations.
#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use leasehold::Client;
use leasehold::memory::MemoryStore;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u32> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the same contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn free_lock_takes_five_allocations() {
    let lock = Client::new(MemoryStore::new()).lock("x");
    let cycle = || {
        pollster::block_on(async {
            let guard = lock.acquire().await.unwrap();
            guard.release().await.unwrap();
        });
    };
    let allocations = |work: &dyn Fn()| {
        let before = ALLOCATIONS.get();
        work();
        ALLOCATIONS.get() - before
    };
    // The first cycle makes room for later ones.
    cycle();
    let executor = allocations(&|| pollster::block_on(async {}));
    // The request, the lease, and the futures of the store: `acquire`, its one step, and `release`.
    assert_eq!(allocations(&cycle) - executor, 5);
}
