//! What Leasehold's stores on servers share. How a client and a server prove who they are: TLS, client certificates, and
//! passwords. The reader of their URLs. How a client finds a server that answers.
//!
//! This is a part of Leasehold's stores. All files may change while a client runs, and
//! [`TlsClient`] and [`Password`] read them again for each connection.
#![forbid(unsafe_code)]

mod address;
mod file;
mod parameters;
mod password;
mod race;
mod tls;
mod url;

pub use address::{HostPort, percent_decoded};
pub use parameters::{FileParameters, Login, check_files};
pub use password::{Password, PasswordSource};
pub use race::{ATTEMPT_DELAY, connect, race};
pub use tls::{TlsClient, TlsFiles, TlsSource, TlsStream, handshake, refusal};
/// The version of rustls whose configurations the stores take.
pub use tokio_rustls::rustls;
pub use url::{ENCODED, Scheme, StoreUrl, UrlForm};
