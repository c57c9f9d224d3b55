//! Errors: what a failed call means, and what to do.
//!
//! Every call fails with an [`Error`](crate::Error). Its text is one line for people and for logs. Programs match on its
//! [`kind`](crate::Error::kind).
//!
//! | kind | what happened | what to do |
//! |---|---|---|
//! | `Busy` | another owner still held the lock when the wait ended | try later, or skip the work |
//! | `Lost` | the guard is no longer valid | stop the work: another client may hold the lock |
//! | `Fenced` | the resource has seen a later holder | stop the work |
//! | `NoQuorum`, `Untrusted`, `Unreachable`, `InvalidResponse` | the store, or too many of its members, could not be asked | try later; [`members`](crate::Error::members) says what each server lacks |
//! | `Refused` | the store denies access | fix the password, the rights, or the certificate |
//! | `InvalidInput`, `PermitsDiffer` | a value breaks a rule, or two programs disagree | fix the call; the text names the value and the rule |
//! | `NotInitialized` | the store was never prepared, or for another version | run `leasehold init`, or call `init` of the store |
//! | `Unsupported` | the store cannot do this | choose another store ([`choosing`](super::choosing)) |
//! | `IncompatibleKey`, `Corrupt` | the store has data that Leasehold cannot use under this name | choose another name, or remove the data |
//! | `Io` | the system reported the failure of a file | see the text |
//! | `Forked`, `Closed` | this process cannot use the client: it is a forked child, or has no thread | make a client after the fork |
//!
//! More kinds may come, so a `match` needs a last arm. [`is_retryable`](crate::Error::is_retryable) sorts all of them:
//!
//! ```
//! # pollster::block_on(async {
//! use std::time::Duration;
//! use leasehold::{Client, Error, ErrorKind, memory::MemoryStore};
//!
//! /// The status of an HTTP response.
//! fn status(error: &Error) -> u16 {
//!     match error.kind() {
//!         ErrorKind::Busy => 409,
//!         ErrorKind::InvalidInput => 400,
//!         _ if error.is_retryable() => 503,
//!         _ => 500,
//!     }
//! }
//!
//! let store = MemoryStore::new();
//! let (ours, theirs) = (Client::new(store.clone()), Client::new(store));
//! let _guard = theirs.lock("deploy").acquire().await?;
//! let busy = ours.lock("deploy").wait(Duration::from_millis(10)).acquire().await.unwrap_err();
//! assert_eq!(status(&busy), 409);
//! assert_eq!(busy.holder(), Some(theirs.id()));
//! for holder in ours.holders("deploy").await? {
//!     println!("held by {holder}"); // the program, its process, and its machine
//! }
//! let invalid = ours.lock("").acquire().await.unwrap_err();
//! assert_eq!((status(&invalid), &*invalid.to_string()), (400, "lock name is empty; give at least one character"));
//! # Ok::<(), leasehold::Error>(()) }).unwrap();
//! ```
//!
//! # Did the call have an effect?
//!
//! [`Error::effect`](crate::Error::effect) is [`Unknown`](crate::Effect::Unknown) if the request may have reached the store.
//! After a failed `acquire` there is nothing to do: the client releases what the store may have granted. So a wait that ends
//! as `Busy` never has an unknown effect. After a failed `release` the client keeps trying, and the TTL frees the lock at the
//! latest. After a failed commit of [`Once`](crate::once::Once), ask again.
