//! What is in a lock directory, for people. Nothing here takes a lock or changes a file.

mod examine;
pub(crate) mod listing;

pub use examine::DirectoryFacts;
