//! The quorum protocol as a finite world, searched state by state.
//!
//! A [`World`](state::World) is what every client and every member knows at one instant. All that
//! may happen next ([`steps`]) follows from the [`Rules`](rules::Rules) of the protocol, within
//! [`Bounds`](bounds::Bounds) on how often it may happen. [`search`] visits every world that can be
//! reached and holds the [`properties`] against each step, so that a rule that is left out is
//! found by its shortest trace. [`variants`] lists the design and the ways to break it.
//!
//! `docs/model.md` says how the model reads the protocol, what it shows and what it does not.
#![forbid(unsafe_code)]

pub mod bounds;
mod packing;
pub mod properties;
pub mod rules;
pub mod search;
pub mod state;
pub mod steps;
pub mod variants;
