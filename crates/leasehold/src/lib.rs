//! Distributed locks as leases.
#![forbid(unsafe_code)]

use std::future::Future;
use std::pin::Pin;

/// Time and chance, as the code takes them from its surroundings.
pub mod ambient;
pub mod background;
pub mod clock;

mod attempt;
mod claim;
mod error;
mod fence;
mod guarantees;
mod holder;
mod key;
mod member;
mod owner;
mod store;

pub use attempt::{Attempt, Busy, Grant, LostReason, Release, Renewal};
pub use claim::{Claim, Held, Mode};
pub use error::{Effect, Error, ErrorKind};
pub use fence::Fence;
pub use guarantees::{Exclusion, Expiry, Fencing, Guarantees, LeaseTerms, Order, Sharing, Waiting};
pub use holder::{ClientInfo, Holder};
pub use key::Key;
pub use member::{Health, Member, MemberFailure, MemberId, Seal};
pub use owner::{ClientId, NotAnOwner, Owner};
pub use store::Store;

/// A boxed future, as the methods of [`Store`] return it, so that a store can be `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
