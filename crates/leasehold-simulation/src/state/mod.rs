//! What a run consists of: clients, servers, the network between them, and what is due next.

pub(crate) mod agenda;
pub(crate) mod simulation;
