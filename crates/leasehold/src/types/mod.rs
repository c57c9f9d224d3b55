//! Values that are checked once: keys, owners, fences, tickets, holders, and the error.

mod client_info;
mod error;
mod error_kind;
mod fence;
mod holder;
mod key;
mod key_rules;
mod lost_reason;
mod member_id;
mod mode;
mod owner;
mod pattern;
mod permits;
mod printable;
mod queue;
#[cfg(feature = "serde")]
mod serde_text;

pub use client_info::ClientInfo;
pub(crate) use error::forked;
pub use error::{Error, MemberFailure};
pub use error_kind::{Effect, ErrorKind};
pub use fence::Fence;
pub use holder::Holder;
pub use key::Key;
pub use lost_reason::LostReason;
pub use member_id::MemberId;
pub use mode::Mode;
pub use owner::{ClientId, NotAnOwner, Owner};
pub use pattern::Pattern;
pub use permits::{PermitSlot, PermitSlots, Permits};
pub(crate) use printable::unprintable;
pub use printable::{is_printable, printable};
pub use queue::{Ticket, Waiter};
#[cfg(feature = "serde")]
pub(crate) use serde_text::{parse_text, serialize_as_text};
