//! Fencing: how a resource refuses a holder that comes too late.
//!
//! A lease says until when a holder may act. It cannot say when an action *arrives*: between the
//! check and the write lie a scheduler, perhaps a suspended virtual machine, and a network. So
//! each grant carries a [`Fence`](crate::Fence), greater than every earlier one of its key, and
//! the resource refuses a smaller one than the greatest it has seen. The first write of the new
//! holder shuts the door behind the old one; until then the old one may still get in, so write
//! something early.
//!
//! In SQL, with a column `fence` beside the data:
//!
//! ```sql
//! UPDATE invoice SET total = $1, fence = $2 WHERE id = $3 AND fence <= $2
//! ```
//!
//! No row changed means that a later holder has written: stop. In one process the same is
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use leasehold::{Client, Fence, MemoryStore};
//!
//! struct Door(AtomicU64);
//!
//! impl Door {
//!     /// Lets everybody in whose fence is not smaller than the greatest so far.
//!     fn enter(&self, fence: Fence) -> bool {
//!         self.0.fetch_max(fence.get(), Ordering::SeqCst) <= fence.get()
//!     }
//! }
//!
//! # pollster::block_on(async {
//! let (locks, door) = (Client::new(MemoryStore::new()), Door(AtomicU64::new(0)));
//! let paused = locks.lock("x").acquire().await?;
//! let late = paused.fence();
//! paused.release().await?;
//! let next = locks.lock("x").acquire().await?;
//! assert!(door.enter(next.fence()));
//! assert!(!door.enter(late), "the paused holder comes too late");
//! # Ok::<(), leasehold::Error>(()) }).unwrap();
//! ```
//!
//! # What the order rests on
//!
//! On the file store, on a counter that is on the disk before the guard is returned. On Redis, on
//! a counter per member that is at least the proposal of each attempt, which is the client's wall
//! clock in microseconds. No clock matters while no member has lost its counter. After such a loss
//! (a restart without data, or seven days of rest) the order rests on the clients' wall clocks:
//! attempts must be further apart than those clocks differ.
