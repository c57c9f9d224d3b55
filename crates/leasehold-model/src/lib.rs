//! The quorum protocol as a finite state machine, searched state by state.
//!
//! A [`ModelState`](state::ModelState) is what every client and every member knows at one instant. The
//! [`Rules`](rules::Rules) of the protocol decide which [`steps`] may happen next, and the
//! [`Bounds`](bounds::Bounds) limit how often. [`search`] visits every state that can be reached and
//! checks the [`properties`] of each step, so it finds the shortest trace that a missing rule allows.
//! [`variants`] lists the design and the ways to break it. [`identity`] is a search of its own: which server is a member.
//!
//! `docs/development/model.md` says how the model reads the protocol, what it shows and what it does not.
#![forbid(unsafe_code)]

pub mod bounds;
pub mod identity;
mod packing;
pub mod properties;
pub mod rules;
pub mod search;
pub mod state;
pub mod steps;
pub mod variants;
