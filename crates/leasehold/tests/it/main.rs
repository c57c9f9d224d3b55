//! The client under virtual time, over members that fail on command.

mod acquiring;
mod callers;
mod claiming;
mod downgrade;
mod freeing;
mod keeping;
mod key_sets;
mod lock_delay;
mod once;
mod own_fences;
mod paused_machine;
mod permits;
mod queue;
mod quorum;
mod scene;
mod sending;
mod sets;
mod sharing;
mod trust;
mod waking;
