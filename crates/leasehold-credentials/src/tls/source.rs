use std::fmt;
use std::sync::Arc;

use leasehold::{Error, ErrorKind};
use tokio_rustls::rustls::ClientConfig;

use super::TlsFiles;

/// How the two sides of a TLS connection prove who they are. `Debug` does not show a configuration.
#[derive(Clone)]
#[non_exhaustive]
pub enum TlsSource {
    /// The files of a URL, which are read again for each connection.
    Files(TlsFiles),
    /// A configuration of the program.
    Config(Arc<ClientConfig>),
}

impl TlsSource {
    /// Checks that the files can be used now.
    ///
    /// # Errors
    ///
    /// Those of [`TlsFiles::check`].
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Self::Files(files) => files.check(),
            Self::Config(_) => Ok(()),
        }
    }

    /// Replaces the source of a store by a configuration of the program. `with` is the part of a URL that asks for TLS.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if the store is without TLS.
    pub fn replace(
        tls: &mut Option<Self>,
        config: Arc<ClientConfig>,
        with: &str,
    ) -> Result<(), Error> {
        let Some(source) = tls else {
            let text = format!("a TLS configuration is for {with} alone");
            return Err(Error::new(ErrorKind::InvalidInput, text));
        };
        *source = Self::Config(config);
        Ok(())
    }
}

/// The same configuration is the same source.
impl PartialEq for TlsSource {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Files(one), Self::Files(other)) => one == other,
            (Self::Config(one), Self::Config(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for TlsSource {}

impl From<TlsFiles> for TlsSource {
    fn from(files: TlsFiles) -> Self {
        Self::Files(files)
    }
}

impl fmt::Debug for TlsSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(files) => files.fmt(f),
            Self::Config(_) => f.write_str("Config(…)"),
        }
    }
}
