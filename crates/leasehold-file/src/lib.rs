//! Locks between the processes of one machine, without a server: the file store of Leasehold.
//!
//! Each lock is a file in one directory, held by `flock(2)`. The kernel frees it when its holder
//! ends, however it ends; so nothing expires, no lease has to be renewed in time, and no clock
//! decides who holds a lock. That is a stronger promise than any lease can give.
//!
//! ```
//! use std::sync::Arc;
//!
//! use leasehold::store::{Expiry, Store};
//! use leasehold_file::FileStore;
//!
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path().join("locks");
//! let store: Arc<dyn Store> = FileStore::open(&dir)?.into();
//! assert_eq!(store.guarantees().expiry, Expiry::WithProcess);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What a lock file holds
//!
//! | bytes | content |
//! |---|---|
//! | 0 and 512 | two slots with the fence counter, written in turn, each with a checksum |
//! | 1024 | the key as text |
//! | 2048 + 1024 × *n* | the holders: one record each, valid while a lock on the record's first byte is held (`F_OFD_SETLK`) |
//! | 1050624 + *n* | nothing: holders of one of *n* permits share the lock on this byte, and shared holders the one where *n* is 0 |
//! | 1050753 | nothing: waiting writers share the lock on this byte |
//!
//! All holders that share the lock share the `flock`, which keeps out exclusive requests. The bytes of their
//! kinds keep readers and permit holders apart, and a permit is the lock on the record of its holder. So the
//! kernel alone knows who holds the lock, and what is written serves people.
//!
//! The store removes no lock file by itself, because a file keeps the counter of its key. [`FileStore::remove_unused`]
//! removes those that were not used for long. You can safely remove the file of a free lock: the client's wall
//! clock carries the fences on. You can also create an empty file
//! of the right name ([`FileStore::lock_file`]), as `flock(1)` does. Removing or replacing the file of a *held* lock
//! takes the lock away from its holder. The kernel notifies the holder, which is lost a moment later. Without
//! notifications, it learns of the loss at its next renewal. Until then, two clients hold the lock.
//!
//! # Waiting
//!
//! The waiters of one client form a queue for each lock and mode, which keeps the lock file open. The kernel
//! notifies the queue (`inotify(7)`) when a process closes the file. A release, the death of a holder and the
//! end of `flock(1)` all do that. The client's thread then tries to take the lock for the first waiter. If the
//! waiter does not take the lock within a second, because nothing polls it, the lock passes to the next one.
//!
//! A queue never waits for `flock` in the kernel: such a wait blocks a thread that cannot be called back, and
//! that would take the lock for a waiter that is gone. So **waiters are served in no order**: the kernel
//! notifies all queues at once, and the first one to try wins.
//!
//! There is one exception: a request that shares the lock or takes a permit yields to a writer that waits for
//! the exclusive lock. It lets one writer pass, and then competes like the others. So neither side keeps
//! the other waiting indefinitely. Meanwhile the lock is busy for requests that do not wait, unless they are
//! [barging](leasehold::Lock::barging). Readers and requests for permits have no such order among them.
//!
//! - When an exclusive holder [lets others share the lock](leasehold::store::Session::renew), it closes the file once to
//!   notify them.
//! - A holder can give a lock back without a close (`LOCK_UN` alone, or a descriptor that a child keeps
//!   open). Waiters find such a lock within two seconds, because each queue also tries at random every one
//!   to two seconds. The same applies to a lock directory that is moved away with its files.
//! - A process that keeps opening and closing a lock file wakes its waiters each time. Each queue then
//!   tries at most a hundred times a second.
//! - If the kernel has no room for another inotify instance or watch
//!   (`fs.inotify.max_user_instances`, `max_user_watches`), queues poll at random every 10 to 50 ms,
//!   and the store logs a warning once. The kernel notifies them again as soon as it has room.
//! - A client keeps at most 256 files open for its queues, a quarter of them for writers alone, so that a process
//!   does not run out of descriptors. The other queues take turns to open their file and try, a few hundred times a
//!   second together.
//! - If a waiting writer does not take the free lock, because its process is stopped, other waiters pass it
//!   over once the lock has been free for a second. For requests that do not wait, the lock is busy until the
//!   writer continues or ends.
//!
//! # Records
//!
//! The [record](leasehold::store::Records) of a lock is a file next to its lock file, with `.record` behind its name. A write
//! puts a new file in its place, and returns when that is on the disk. A checksum shows damage. In a directory with
//! the sticky bit, as `/tmp` is, a user cannot replace the file of another user. The write then overwrites it, and
//! the new file stays next to it, as `.record.new`, until that is on the disk: readers fall back to it if a crash
//! interrupts the write.
//! Its times are wall-clock times. Later writes gradually remove what has expired: a value after its
//! retention, and its file a week later.
//!
//! # Limits
//!
//! - Permits and `flock -s` do not exclude each other: the kernel does not show what kind of shared holder
//!   it sees. `flock -s` keeps out exclusive requests, as always. A script that must exclude permit holders
//!   takes the lock exclusively (`flock` without `-s`).
//! - `flock -s` does not yield to writers, and no request yields to a `flock` that waits.
//! - Before Linux 4.0, another process may get the lock while its exclusive holder converts it to a shared
//!   lock.
//!
//! The directory must be on a local file system, because `flock` is not reliable over a
//! network. A child process that inherits the descriptor (across `fork` without `exec`) keeps the
//! lock of a parent that died without releasing it.
//!
//! # macOS
//!
//! The store also builds for macOS, where its tests do not run. Three things differ there:
//!
//! - A lock is held by a lock on byte 1024 (`F_OFD_SETLK`) and not by `flock(2)`. The two exclude each other, because
//!   the kernel of macOS treats a `flock` as a lock on all bytes. So a `flock` also waits while a writer of this store
//!   waits, and `flock -s` keeps out readers too.
//! - The kernel notifies no waiter. Waiters poll at random every 10 to 50 ms.
//! - Without `/proc/locks`, a listing shows one of several programs that hold a lock by `flock -s`.
#![cfg_attr(target_os = "linux", forbid(unsafe_code))]

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
compile_error!(
    "leasehold-file and the command `leasehold` need Linux or macOS, whose kernels lock bytes for an open file. \
     The other libraries also work on Windows, with a store on a server"
);

mod directory;
mod failure;
mod format;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod inspect;
mod kernel;
mod locking;
mod store;

pub use inspect::DirectoryFacts;
pub use locking::cleanup::Cleanup;
pub use store::{FileStore, FileStoreOptions};
