//! One connection to one server, shared by all callers. The only module that names the `redis`
//! crate; everything else speaks in [`Command`]s and [`Answer`]s.

mod answer;
mod command;
mod connector;
mod failure;
mod info;
mod link;
mod listener;
mod opening;
mod socket;
mod tls;

pub(crate) use answer::{Answer, Refusal, read_time, wall_time};
pub(crate) use command::{Command, Script};
pub(crate) use connector::Connector;
pub(crate) use failure::Rights;
pub(crate) use info::Info;
pub(crate) use link::{Link, Unanswered};
pub(crate) use tls::Tls;
