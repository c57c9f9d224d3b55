//! How a client and a server prove who they are: TLS, client certificates, and passwords.
//!
//! This is a part of Leasehold's stores. Everything comes from files that may change while a client runs, and
//! [`TlsClient`] and [`Password`] read them again for each connection.
#![forbid(unsafe_code)]

mod file;
mod parameters;
mod password;
mod tls;

pub use parameters::{FileParameters, Login, check_files};
pub use password::Password;
pub use tls::{TlsClient, TlsFiles, TlsStream, handshake, refusal};
