//! The client under virtual time, over members that fail on command.

mod acquiring;
mod announcing;
mod breaking;
mod callers;
mod claiming;
mod downgrade;
mod freeing;
mod handles;
mod keeping;
mod key_sets;
mod leading;
mod lock_delay;
mod losing;
mod once;
mod own_fences;
mod paused_machine;
mod permits;
mod queue;
mod quorum;
mod record_writes;
mod scene;
mod sending;
mod sets;
mod sharing;
mod trust;
mod waking;
