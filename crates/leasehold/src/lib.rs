//! Distributed locks as leases: one lock API over a local file, one Redis, or a Redlock quorum.
//!
//! A [`Guard`] knows until when it may be trusted. Its deadline is counted from before the request
//! was sent, on a clock that goes on while the machine sleeps; a keeper on a thread of its own
//! renews it; and when it cannot, the guard is *lost* before the store lets anybody else in, and
//! says so by itself. Every grant carries a [`Fence`], greater than all before it, for resources
//! that check.
//!
//! ```
//! use std::time::Duration;
//! use leasehold::{Client, MemoryStore};
//!
//! # pollster::block_on(async {
//! let locks = Client::new(MemoryStore::new()); // or a FileStore, a RedisStore
//!
//! let guard = locks.lock("invoices/2026-11").wait(Duration::from_secs(5)).acquire().await?;
//! guard.ensure(Duration::from_secs(2))?; // before a step that must not happen without the lock
//! println!("UPDATE … WHERE fence <= {}", guard.fence());
//! guard.release().await?;
//!
//! if let Some(guard) = locks.lock("nightly").try_acquire().await? { // busy is not an error
//!     guard.run(async { /* cancelled, then released, if the lease is lost */ }).await?;
//! }
//! # Ok::<(), leasehold::Error>(()) }).unwrap();
//! ```
//!
//! Calls work on any executor, and [`blocking`] offers the same without async.
//!
//! # Which store
//!
//! | you have | take | a holder that dies | promises |
//! |---|---|---|---|
//! | one machine | `leasehold_file::FileStore` | frees the lock at once | the kernel's: no lease, no deadline, nothing expires falsely |
//! | one Redis or Valkey | `leasehold_redis::RedisStore` | frees it after one TTL | as long as that server keeps its data; not across a failover |
//! | three or five independent ones | `leasehold_redis::RedisStore` of all | frees it after one TTL | while a majority keeps its data; a minority may be dead or frozen |
//! | a test | [`MemoryStore`] | frees it after one TTL | within one process |
//!
//! [`Guarantees`] has the same in types, for programs that refuse to run with less than they need.
//! [`manual::choosing`] says more.
//!
//! # What it does not do
//!
//! - A lease cannot stop work that is already past its check: a process that was paused, or a
//!   packet that was delayed, reaches the resource late. Only a resource that compares fences
//!   refuses it. [`manual::fencing`] shows how.
//! - A quorum notices members that forget or whose clocks are stepped; what stays outside is in
//!   [`manual::failure`].
//! - Waiting is first come, first served on Redis and quorums; the file store's waiters are told when
//!   a lock is free, but in no order. [`manual::waiting`] says more.
//! - It is no consensus store: what it keeps beside a lock is [small](HeldRecord), and one holder's to write at a time. Two
//!   may think that they lead ([`manual::leadership`]).
//!
//! # The parts, in reading order
//!
//! [`Client`] makes [`Lock`]s, a lock makes a [`Guard`]; so does a [`Semaphore`], of which several may
//! be held, and a [`LockSet`] takes several locks at once. A [`Once`] runs a request once and keeps its result. A [`Handle`] is what a guard is given up to,
//! where the process that holds the lock ends and another goes on. An [`Election`] makes one of many the leader, for all
//! to see. A resource that checks fences is
//! [`Fenced`]; [`FenceGate`] is one. Operators see all locks with [`Client::survey`], and take one from a
//! holder that hangs with [`Client::break_lock`]; what a program's locks cost it, and which it lost, is told by the metrics
//! and spans of [`manual::observing`]. Implementors read [`Store`], its optional parts
//! [`Inspection`], [`Admin`], [`Records`] and [`Health`]. Each numbered obligation is a
//! named test. [`Error`] has a kind, an effect and predicates. Time and chance come from [`ambient`]
//! and [`clock`].
#![forbid(unsafe_code)]

use std::future::Future;
use std::pin::Pin;

/// Time and chance, as the code takes them from its surroundings.
pub mod ambient;
pub mod background;
pub mod blocking;
pub mod clock;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
pub mod manual;
pub mod telemetry;

mod acquisition;
mod admin;
mod attempt;
mod backoff;
mod breaking;
mod card;
mod claim;
mod client;
mod client_context;
mod client_core;
mod doubts;
mod error;
mod fence;
mod fence_gate;
mod fenced;
mod guarantees;
mod guard;
mod guard_set;
mod guarded;
mod handing;
mod handle;
mod handle_text;
mod health;
mod holder;
mod inspection;
mod keeper;
mod key;
mod leader;
mod lease;
mod lock;
mod lock_set;
mod member;
mod memory;
mod nursery;
mod once;
mod once_run;
mod once_state;
mod once_steps;
mod optional;
mod owner;
mod patience;
mod pattern;
mod permits;
mod queue;
mod record;
mod record_slot;
mod records;
mod running;
mod semaphore;
mod store;
mod survey;
mod taking_back;
mod tenure;
mod timers;

pub use admin::Admin;
pub use attempt::{Attempt, Busy, Grant, LostReason, Release, Renewal};
pub use breaking::{Breach, Break, BreakRecord, Broken};
pub use card::{Card, CardEdit, Life, Mark, MemberSet, RunId, Sighting};
pub use claim::{Claim, Held, Mode};
pub use client::{Client, ClientBuilder};
pub use error::{Effect, Error, ErrorKind};
pub use fence::Fence;
pub use fence_gate::FenceGate;
pub use fenced::Fenced;
pub use guarantees::{
    Breaking, Counting, Exclusion, Expiry, Fencing, Guarantees, LeaseTerms, Order, Sharing, Waiting,
};
pub use guard::{Ended, Guard, GuardState};
pub use guard_set::GuardSet;
pub use guarded::Guarded;
pub use handle::Handle;
pub use health::{Health, MemberHealth};
pub use holder::{ClientInfo, Holder};
pub use inspection::Inspection;
pub use key::Key;
pub use leader::{Election, Leader, LeaderChange, LeaderWatch, Leadership};
pub use lock::Lock;
pub use lock_set::LockSet;
pub use member::{Incarnation, MemberFailure, MemberId, Presence, Sample, Seal};
pub use memory::MemoryStore;
pub use once::{Once, OnceResult, OnceStart};
pub use once_run::OnceRun;
pub use owner::{ClientId, NotAnOwner, Owner};
pub use pattern::Pattern;
pub use permits::{Permits, Slot, Slots};
pub use queue::{Ticket, Wait, Waiter};
pub use record::{HeldRecord, Record};
pub use record_slot::{KeptValue, RecordSlot};
pub use records::{
    Opened, RECORD_MEMORY, Reading, RecordKey, RecordWrite, Records, Stamp, Written, Wrote,
};
pub use semaphore::Semaphore;
pub use store::Store;
pub use survey::{Sight, Survey, SurveyedLock};

/// A boxed future, as the methods of [`Store`] return it, so that a store can be `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
