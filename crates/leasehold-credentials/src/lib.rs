//! How a client and a server prove who they are: TLS, client certificates, and passwords; and the other parts of the URLs
//! that Leasehold's stores share.
//!
//! This is a part of Leasehold's stores. All files may change while a client runs, and
//! [`TlsClient`] and [`Password`] read them again for each connection.
#![forbid(unsafe_code)]

mod address;
mod file;
mod parameters;
mod password;
mod tls;

pub use address::{
    HostPort, checked_name, checked_prefix, parameters, percent_decoded, split_login,
    without_secrets,
};
pub use parameters::{FileParameters, Login, check_files};
pub use password::Password;
pub use tls::{TlsClient, TlsFiles, TlsStream, handshake, refusal};
