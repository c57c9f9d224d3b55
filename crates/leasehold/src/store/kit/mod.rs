//! For authors of stores on a network: what their stores would otherwise write alike.

mod record_cell;

pub use record_cell::{LoadedRecord, RecordCell};
