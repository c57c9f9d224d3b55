//! The protocol of Redis servers (RESP): commands as they are written, and values as they are read.
#![deny(clippy::disallowed_types)]

mod parser;
mod value;
mod writer;

pub use parser::{ParseError, Parser};
pub use value::Value;
pub use writer::CommandWriter;
