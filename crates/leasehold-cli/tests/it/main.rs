//! The command line, run as its users run it: real processes, signals, terminals and servers.

mod bad_input;
mod documents;
mod ending;
mod exit_codes;
mod harness;
mod messages;
mod nesting;
mod processes;
mod pty;
mod redis;
mod signals;
mod stores;
mod terminal;
mod waiting;
