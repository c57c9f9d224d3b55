//! Distributed locks as leases.
#![forbid(unsafe_code)]

use std::future::Future;
use std::pin::Pin;

/// Time and chance, as the code takes them from its surroundings.
pub mod ambient;
pub mod background;
pub mod blocking;
pub mod clock;

mod acquisition;
mod attempt;
mod backoff;
mod claim;
mod client;
mod error;
mod fence;
mod guarantees;
mod guard;
mod holder;
mod keeper;
mod key;
mod lease;
mod lock;
mod member;
mod memory;
mod owner;
mod quorum;
mod store;
mod tenure;

pub use attempt::{Attempt, Busy, Grant, LostReason, Release, Renewal};
pub use claim::{Claim, Held, Mode};
pub use client::{Client, ClientBuilder};
pub use error::{Effect, Error, ErrorKind};
pub use fence::Fence;
pub use guarantees::{Exclusion, Expiry, Fencing, Guarantees, LeaseTerms, Order, Sharing, Waiting};
pub use guard::{Ended, Guard};
pub use holder::{ClientInfo, Holder};
pub use key::Key;
pub use lock::Lock;
pub use member::{Health, Member, MemberFailure, MemberId, Seal};
pub use memory::MemoryStore;
pub use owner::{ClientId, NotAnOwner, Owner};
pub use quorum::Quorum;
pub use store::Store;

/// A boxed future, as the methods of [`Store`] return it, so that a store can be `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
