//! TLS: the authorities that vouch for servers, and the certificate of the client.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use leasehold::store::background;
use leasehold::{Error, ErrorKind};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// The files that a URL names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// The authorities; those of the machine if there is none.
    pub(crate) ca: Option<PathBuf>,
    /// The certificate of the client, and its key.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
}

/// How to encrypt connections.
pub(crate) struct Tls {
    given: Option<RootCertStore>,
    identity: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    config: OnceLock<Arc<ClientConfig>>,
}

impl Tls {
    /// Reads the files.
    pub(crate) fn new(files: &TlsFiles) -> Result<Self, Error> {
        let given = files.ca.as_deref().map(authorities).transpose()?;
        let identity = files.identity.as_ref().map(|(cert, key)| {
            let chain = certificates("cert", cert)?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| unreadable("key", key, &error, "a private key in PEM"))?;
            Ok::<_, Error>((chain, key))
        });
        Ok(Self {
            given,
            identity: identity.transpose()?,
            config: OnceLock::new(),
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
        connector.connect(name, stream).await.map_err(|error| {
            let inner = error.get_ref();
            let by_tls =
                inner.is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>);
            let (kind, hint) = if by_tls {
                let hint = "; is it the port for TLS (secureClientPort), and does `ca` name its authority?";
                (ErrorKind::Refused, hint)
            } else {
                (ErrorKind::Unreachable, "")
            };
            Error::new(kind, format!("no TLS connection: {error}{hint}")).with_source(error)
        })
    }

    async fn config(&self) -> Result<Arc<ClientConfig>, Error> {
        if let Some(config) = self.config.get() {
            return Ok(Arc::clone(config));
        }
        let roots = match &self.given {
            Some(roots) => roots.clone(),
            None => background::blocking(authorities_of_the_machine).await??,
        };
        let unusable =
            |error: rustls::Error| Error::new(ErrorKind::InvalidInput, format!("TLS: {error}"));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_root_certificates(roots);
        let config = match &self.identity {
            Some((chain, key)) => builder
                .with_client_auth_cert(chain.clone(), key.clone_key())
                .map_err(unusable)?,
            None => builder.with_no_client_auth(),
        };
        Ok(Arc::clone(self.config.get_or_init(|| Arc::new(config))))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

fn unreadable(parameter: &str, file: &Path, error: &dyn fmt::Display, expected: &str) -> Error {
    let file = file.display();
    let text = format!("`{parameter}` file {file}: {error}; expected {expected}");
    Error::new(ErrorKind::InvalidInput, text)
}

fn certificates(parameter: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let refuse = |error: &dyn fmt::Display| unreadable(parameter, file, error, "PEM certificates");
    let found = CertificateDer::pem_file_iter(file).map_err(|error| refuse(&error))?;
    let found: Result<Vec<_>, _> = found.collect();
    let found = found.map_err(|error| refuse(&error))?;
    if found.is_empty() {
        return Err(refuse(&"no certificate in it"));
    }
    Ok(found)
}

fn authorities(file: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("ca", file)? {
        let added = roots.add(certificate);
        added.map_err(|error| unreadable("ca", file, &error, "PEM certificates"))?;
    }
    Ok(roots)
}

fn authorities_of_the_machine() -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let text = "this machine has no list of certificate authorities: install ca-certificates, or name a \
                    file with ?ca=";
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    Ok(roots)
}
