//! The client under virtual time, over a store that fails on command.

mod acquiring;
mod announcing;
mod breaking;
mod callers;
mod claiming;
mod downgrade;
mod handles;
mod keeping;
mod key_sets;
mod leading;
mod leaving;
mod lock_delay;
mod losing;
mod once;
mod permits;
mod record_writes;
mod scene;
mod sending;
mod sharing;
mod telemetry;
mod unsettled;
mod waits;
mod waking;
mod watching;
