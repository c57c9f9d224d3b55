//! The quorum protocol as a finite state machine, searched state by state with stateright.
//!
//! A [`State`](state::State) is what every client and every member knows at one instant. The [`Rule`](rules::Rule)s of the
//! protocol decide which [`Step`](step::Step) may happen next, and the [`Bounds`](rules::Bounds) limit how often. A
//! [`search`] visits every state that can be reached and checks the [`Promise`](state::Promise)s. [`table`] lists the
//! searches: the design, and each of its rules left out.
//!
//! `docs/development/model.md` says how the model reads the protocol, what it shows and what it does not.
#![forbid(unsafe_code)]

mod client;
mod member;
pub mod quorum;
pub mod rules;
pub mod search;
pub mod state;
pub mod step;
pub mod table;
