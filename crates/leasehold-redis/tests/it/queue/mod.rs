//! Waiting in turn, on one member.

mod crowd;
mod gaps;
mod hand_on;
mod hearing;
mod leaving;
mod order;
mod party;
mod permits;
mod records;
mod reservations;
mod rights;
mod shared;
mod usual;
