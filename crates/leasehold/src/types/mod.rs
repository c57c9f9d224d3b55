//! Values that are checked once: keys, owners, fences, tickets, holders, and the error.

mod error;
mod fence;
mod holder;
mod key;
mod key_rules;
mod member_id;
mod mode;
mod owner;
mod pattern;
mod permits;
mod queue;

pub(crate) use error::forked;
pub use error::{Effect, Error, ErrorKind, MemberFailure};
pub use fence::Fence;
pub use holder::{ClientInfo, Holder};
pub use key::Key;
pub use member_id::MemberId;
pub use mode::Mode;
pub use owner::{ClientId, NotAnOwner, Owner};
pub use pattern::Pattern;
pub use permits::{Permits, Slot, Slots};
pub use queue::{Ticket, Wait, Waiter};
