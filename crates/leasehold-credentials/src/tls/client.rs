use std::fmt;
use std::sync::{Arc, Mutex};

use leasehold::Error;
use leasehold::store::{background, locked};
use tokio_rustls::rustls::ClientConfig;

use super::TlsSource;
use super::material::Loaded;

/// The side of the client in TLS connections.
///
/// It reads its files for each connection and compares them with what it read last. So a new certificate, key or
/// authority takes effect with the next connection. If the new files cannot be used, for example because only one of
/// certificate and key was replaced yet, it continues with the earlier ones and logs the reason once.
pub struct TlsClient {
    source: TlsSource,
    /// The protocols to negotiate (ALPN).
    protocols: &'static [&'static [u8]],
    state: Mutex<TlsState>,
}

#[derive(Default)]
struct TlsState {
    loaded: Option<Arc<Loaded>>,
    /// Why the files cannot be used now, as the log has it.
    reported: Option<String>,
}

impl TlsClient {
    /// Returns a client with these files or this configuration, which negotiates one of `protocols`. Reads nothing yet.
    pub fn new(source: impl Into<TlsSource>, protocols: &'static [&'static [u8]]) -> Self {
        let mut source = source.into();
        if let TlsSource::Config(config) = &mut source
            && !protocols.is_empty()
        {
            Arc::make_mut(config).alpn_protocols = names(protocols);
        }
        Self {
            source,
            protocols,
            state: Mutex::default(),
        }
    }

    /// Returns the configuration for the next connection.
    ///
    /// # Errors
    ///
    /// If the files cannot be used, and never could; if the machine has no authorities and the files name none.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn config(&self) -> Result<Arc<ClientConfig>, Error> {
        let files = match &self.source {
            TlsSource::Files(files) => files.clone(),
            TlsSource::Config(config) => return Ok(Arc::clone(config)),
        };
        let last = locked(&self.state).loaded.clone();
        let (protocols, before) = (names(self.protocols), last.clone());
        let loaded = background::blocking(move || files.load(before, protocols)).await?;
        match (loaded, last) {
            (Ok(loaded), _) => {
                let config = Arc::clone(&loaded.config);
                *locked(&self.state) = TlsState {
                    loaded: Some(loaded),
                    reported: None,
                };
                Ok(config)
            }
            (Err(error), Some(last)) => {
                self.report(error.reason());
                Ok(Arc::clone(&last.config))
            }
            (Err(error), None) => Err(error),
        }
    }

    fn report(&self, reason: &str) {
        let mut state = locked(&self.state);
        if state.reported.as_deref() != Some(reason) {
            state.reported = Some(reason.to_owned());
            tracing::warn!(%reason, "new TLS files cannot be used, and the earlier ones stay in use");
        }
    }
}

/// Returns the protocols as rustls takes them.
fn names(protocols: &[&[u8]]) -> Vec<Vec<u8>> {
    protocols.iter().map(|name| name.to_vec()).collect()
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsClient")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
