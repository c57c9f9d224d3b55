//! Locks between the processes of one machine, without a server: the file store of Leasehold.
//!
//! Each lock is a file in one directory, held by `flock(2)`. The kernel frees it when its holder
//! ends, however it ends; so nothing expires, no lease has to be renewed in time, and no clock
//! decides who holds a lock. That is a stronger promise than any lease can give.
//!
//! ```
//! use std::sync::Arc;
//!
//! use leasehold::{Expiry, Store};
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
//! | 2048 + 1024 × *n* | who holds it: one record for each holder, true while a lock on the record's first byte is held (`F_OFD_SETLK`) |
//! | 1050624 + *n* | nothing: who holds one of *n* permits shares the lock on this byte with the others, and shared holders theirs where *n* is 0 |
//! | 1050753 | nothing: writers that wait share the lock on this byte |
//!
//! All who are not alone share the `flock`, which keeps out whoever wants to be; from each other they are
//! kept by the byte of their kind, and a permit is the lock on the record of its holder. So the kernel alone
//! knows who is there, and what is written serves people.
//!
//! Lock files are never removed: a file keeps the counter of its key. Removing one that nobody
//! holds is harmless, for the client's wall clock carries the fences on; so is an empty file of
//! the right name ([`FileStore::lock_file`]), as `flock(1)` makes it. Whoever removes one that
//! *is* held takes the lock away from its holder, which learns it at its next renewal.
//!
//! # Waiting
//!
//! A waiter keeps the lock file open and is told by the kernel (`inotify(7)`) when somebody closes
//! it: a release, the death of a holder and the end of `flock(1)` all do. It then tries, without
//! ever queueing for `flock` in the kernel: such a wait blocks a thread that nobody could call back,
//! and that would take the lock for a waiter that is gone. So **waiters are served in no order**:
//! all are told at once, and the first one to try wins. But whoever would share the lock, or have a permit,
//! stands back for a writer that waits to have it alone: it lets one writer by, and is then served
//! like the others. So neither keeps the other waiting for ever. Claims that do not wait, and are not
//! [barging](leasehold::Lock::barging), are busy meanwhile. Readers and those who want a permit have no
//! such order among them.
//!
//! - Whoever holds a lock alone and [lets others share it](leasehold::Store::renew) closes the file once
//!   for them.
//! - A lock that is given back without a close (`LOCK_UN` alone, or a descriptor that a child
//!   keeps open) is found within two seconds, by a try that every waiter makes at random every one
//!   to two seconds. The same goes for a lock directory that is moved away with its files.
//! - Somebody who keeps opening and closing a lock file wakes its waiters each time; each of them
//!   then tries a hundred times a second at most.
//! - Where the kernel has no room for another inotify instance or watch
//!   (`fs.inotify.max_user_instances`, `max_user_watches`), waiters ask at random every 10 to 50 ms,
//!   and a warning is logged once. They are told again as soon as there is room. They also ask at
//!   random beyond 256 waiters of one store, so that a process does not run out of descriptors; there
//!   writers come before those who stand back for them.
//! - A writer that waits but does not come, since its process is stopped, is passed over by those who wait
//!   once the lock was free for a second. For those who do not wait the lock is busy until
//!   the writer goes on or ends.
//!
//! # Records
//!
//! The [record](leasehold::Records) of a lock is a file next to its lock file, with `.record` behind its name. A write
//! puts a new file in its place, and returns when that is on the disk. A checksum shows damage. In a directory with
//! the sticky bit, as `/tmp` is, a user cannot replace the file of another user. The write then overwrites it, and
//! the new file stays next to it, as `.record.new`, until that is on the disk: readers fall back to it if a crash
//! interrupts the write.
//! Its times are the wall clock's. What is over is removed by and by, as records are written: after its
//! retention a value, after a week more the file.
//!
//! # Limits
//!
//! - To permits, `flock -s` is nothing, and both stand side by side: the kernel tells nobody what
//!   kind of shared holder it sees. It keeps out who wants to be alone, as always. A script that is to keep
//!   out holders of permits takes the lock alone (`flock` without `-s`).
//! - `flock -s` stands back for nobody, and nobody for a `flock` that waits.
//! - Before Linux 4.0 the kernel may let somebody in while a lock that was held alone is made shared.
//!
//! Linux alone. The directory must lie on a local file system, since over a network `flock`
//! excludes nobody reliably. A child process that inherits the descriptor (across `fork` without
//! `exec`) keeps a lock of a parent that died without releasing it.
#![forbid(unsafe_code)]

mod as_records;
mod attempt;
mod courtesy;
mod directory;
mod examine;
mod failure;
mod file_name;
mod file_system;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod header;
mod held_lock;
mod holder_record;
mod inspection;
mod kernel_locks;
mod listener;
mod lock_file;
mod options;
mod range_lock;
mod record_file;
mod record_format;
mod renewal;
mod rhythm;
mod room;
mod store;
mod survey;
mod table;
mod waits;

pub use examine::DirectoryFacts;
pub use options::FileStoreOptions;
pub use store::FileStore;
