//! TLS: which files, the configuration that follows from them, and the handshake.

mod client;
mod handshake;
mod material;
mod source;

pub use client::TlsClient;
pub use handshake::{handshake, refusal};
pub use material::TlsFiles;
pub use source::TlsSource;
pub use tokio_rustls::client::TlsStream;
