use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use leasehold::store::background;
use leasehold::{Error, ErrorKind};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::url::Address;

/// How servers prove who they are: by the authorities of one file, or those of the machine.
pub(crate) struct Tls {
    given: Option<RootCertStore>,
    config: OnceLock<Arc<ClientConfig>>,
    /// Whether the server has yet to answer a handshake.
    is_open: AtomicBool,
}

/// A handshake of this length may have reached a server that does not speak TLS: it waits for the end of a line.
/// Shorter than a client waits for its first connections.
pub(crate) const SLOW_HANDSHAKE: Duration = Duration::from_secs(1);

impl Tls {
    /// Reads the authorities of `ca`, where one is given.
    pub(crate) fn new(ca: Option<&Path>) -> Result<Self, Error> {
        let given = ca.map(authorities).transpose()?;
        Ok(Self {
            given,
            config: OnceLock::new(),
            is_open: AtomicBool::new(false),
        })
    }

    /// Returns the error for a handshake with `address` that the server has yet to answer, if there is one.
    pub(crate) fn unanswered(&self, address: &Address) -> Option<Error> {
        self.is_open.load(Ordering::Relaxed).then(|| {
            let text = format!(
                "no TLS handshake from {address}: does the server speak TLS on this port? If not, use \
                 redis://{address}"
            );
            Error::new(ErrorKind::Unreachable, text)
        })
    }

    /// Encrypts `stream`, to the server that calls itself `host`.
    pub(crate) async fn wrap(
        &self,
        stream: TcpStream,
        host: &str,
    ) -> Result<TlsStream<TcpStream>, Error> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            let rule = format!("{host:?} is not a name that a certificate can be for");
            Error::new(ErrorKind::InvalidInput, rule)
        })?;
        let connector = TlsConnector::from(self.config().await?);
        let _handshake = Handshake::begin(&self.is_open);
        connector.connect(name, stream).await.map_err(|error| {
            if let Some(refusal) = refusal(&error) {
                return refusal;
            }
            let inner = error.get_ref();
            let by_tls =
                inner.is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>);
            let kind = if by_tls {
                ErrorKind::Refused
            } else {
                ErrorKind::Unreachable
            };
            Error::new(kind, format!("no TLS connection: {error}")).with_source(error)
        })
    }

    async fn config(&self) -> Result<Arc<ClientConfig>, Error> {
        if let Some(config) = self.config.get() {
            return Ok(config.clone());
        }
        let roots = match &self.given {
            Some(roots) => roots.clone(),
            None => background::blocking(authorities_of_the_machine).await??,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::new(ErrorKind::Unsupported, format!("TLS: {error}")))?;
        let config = builder.with_root_certificates(roots).with_no_client_auth();
        Ok(self.config.get_or_init(|| Arc::new(config)).clone())
    }
}

/// Marks a handshake as open until it ends or is given up.
struct Handshake<'a>(&'a AtomicBool);

impl<'a> Handshake<'a> {
    fn begin(is_open: &'a AtomicBool) -> Self {
        is_open.store(true, Ordering::Relaxed);
        Self(is_open)
    }
}

impl Drop for Handshake<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Returns the error for a failure of TLS that has a known remedy.
pub(super) fn refusal(error: &io::Error) -> Option<Error> {
    use rustls::{AlertDescription, InvalidMessage};
    let text = match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server demands a client certificate, which is not supported yet; set tls-auth-clients no on the \
             server"
        }
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the server does not speak TLS on this port; use redis:// in place of rediss://, or its TLS port"
        }
        _ => return None,
    };
    Some(Error::new(ErrorKind::Refused, text))
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("given", &self.given.as_ref().map(RootCertStore::len))
            .finish_non_exhaustive()
    }
}

fn authorities(ca: &Path) -> Result<RootCertStore, Error> {
    let refuse = |what: String| {
        let rule = format!(
            "`ca` file {}: {what}; expected PEM certificates",
            ca.display()
        );
        Error::new(ErrorKind::InvalidInput, rule)
    };
    let mut roots = RootCertStore::empty();
    let certificates =
        CertificateDer::pem_file_iter(ca).map_err(|error| refuse(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
        let added = roots.add(certificate);
        added.map_err(|error| refuse(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(refuse("no certificate in it".into()));
    }
    Ok(roots)
}

fn authorities_of_the_machine() -> Result<RootCertStore, Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "this machine has no list of certificate authorities: install ca-certificates, or \
             name a file with ?ca=",
        ));
    }
    Ok(roots)
}
