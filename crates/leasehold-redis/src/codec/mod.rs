//! The wire protocol: how the requests of the engine become commands, and answers become replies.
//!
//! `docs/wire.md` specifies it. The Lua scripts implement all rules of the queue; the codec knows their
//! arguments and answers. Nothing here does I/O.
//!
//! A driver uses it as follows, on one RESP3 connection for each member:
//!
//! 1. It subscribes to the channel [`inbox`], and writes the record of the client each minute.
//! 2. For a batch it writes each request with [`Codec::encode`], and [`encode_sample`] after the last one.
//! 3. It takes [`Codec::answers`] values for each request, in order, and hands them to [`Codec::decode`].
//!    [`Sampler::read`] reads the last [`SAMPLE_COMMANDS`] values of the batch.
//! 4. On [`Decoded::NoScript`] it sends `SCRIPT LOAD` with the text, and the request again.
//! 5. It hands each pushed message to [`read_notification`]. The answer to `SUBSCRIBE` is such a message.
#![deny(clippy::disallowed_types)]

mod acquire;
mod command;
mod expiry;
mod failure;
mod info;
mod lease;
mod lock_value;
pub(crate) mod member_record;
mod names;
mod notification;
mod record;
mod requests;
mod sample;
pub(crate) mod status;
mod usual;

pub use command::Codec;
pub(crate) use command::{RIGHTS, write_call};
pub(crate) use expiry::milliseconds;
pub(crate) use failure::{Rights, invalid_response, is_read_only, is_wrong_type, refused};
pub(crate) use info::Info;
pub use lock_value::LockValue;
pub(crate) use lock_value::read_entry;
pub(crate) use names::hash_tag;
pub use names::{Names, PRESENT, inbox};
pub(crate) use names::{client_record, extend_client_record, write_client_record};
pub use notification::read_notification;
pub use requests::{Decoded, script_of};
pub(crate) use sample::read_time;
pub use sample::{SAMPLE_COMMANDS, Sampler, encode_sample};
pub(crate) use usual::UsualRequest;

#[cfg(test)]
mod tests;
