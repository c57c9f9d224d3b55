//! What a run consists of: clients, servers, the network between them, and what is due next.

pub(crate) mod agenda;
pub(crate) mod client;
pub(crate) mod connection;
pub(crate) mod poller;
pub(crate) mod program;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod simulation;
