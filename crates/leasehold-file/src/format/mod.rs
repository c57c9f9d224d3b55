//! What is in the files: bytes from and to values, without I/O.

pub(crate) mod file_name;
pub(crate) mod header;
pub(crate) mod holder_record;
pub(crate) mod record;
