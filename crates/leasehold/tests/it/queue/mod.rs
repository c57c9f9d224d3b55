//! Waiting in the queue: the real quorum over members in memory, which are slow, cut off, or dead.

mod heirs;
mod line;
mod order;
mod parting;
mod stopped;
mod succession;
