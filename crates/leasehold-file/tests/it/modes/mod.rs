mod downgrade;
mod permits;
mod writers;
