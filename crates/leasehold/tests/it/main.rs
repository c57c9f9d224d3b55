//! The client under virtual time, over a store that fails on command.

mod acquire;
mod breaking;
mod election;
mod fencing_off;
mod fixture;
mod handle;
mod key_sets;
mod lease;
mod once;
mod permits;
mod reentrancy;
mod sending;
mod telemetry;
