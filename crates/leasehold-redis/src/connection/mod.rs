//! One connection to one server, shared by all callers. The only module that knows the protocol;
//! everything else speaks in [`Command`]s and [`Answer`]s.

mod answer;
mod answers;
mod command;
mod connector;
mod driver;
mod failure;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod info;
mod introductions;
mod joining;
mod line;
mod link;
mod listener;
mod opening;
mod outbox;
mod reply;
mod running;
mod socket;
#[cfg(test)]
mod tests;
mod tls;
mod visit;
mod writing;

pub(crate) use answer::{Answer, Refusal, read_time, wall_time};
pub(crate) use command::{Command, Script};
pub(crate) use connector::Connector;
pub(crate) use failure::Rights;
pub(crate) use info::Info;
pub(crate) use joining::Joining;
pub(crate) use link::{Link, Unanswered};
pub(crate) use outbox::Replies;
pub(crate) use tls::Tls;
pub(crate) use visit::Visit;
pub(crate) use writing::Writing;
