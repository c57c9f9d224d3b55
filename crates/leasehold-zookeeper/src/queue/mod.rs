//! The queue of a lock: the names of its nodes, and who holds. Pure.
//!
//! Each request of a lock is a node in the folder of the lock, and the server numbers the nodes. Curator's
//! `InterProcessMutex` writes names of the same form, so both libraries exclude each other.

mod decision;
mod node;
mod paths;

pub(crate) use decision::{Decision, Queue, Reader};
pub(crate) use node::{Kind, Node};
pub(crate) use paths::{Paths, fences, is_forbidden, key_of, records};
