//! Threads and tasks, and the state that the tasks of one client share.

pub mod background;
mod client_context;

pub(crate) use client_context::ClientContext;
