use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use leasehold::store::background;
use leasehold::{Error, ErrorKind};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// How a server proves who it is: by the authorities of one file, or those of the machine.
#[derive(Clone)]
pub(crate) struct Tls {
    /// `None` for those of the machine.
    given: Option<RootCertStore>,
    config: OnceLock<ClientConfig>,
}

impl Tls {
    /// Reads the authorities of `ca`, where one is given. Without encryption there are none.
    pub(crate) fn new(is_encrypted: bool, ca: Option<&Path>) -> Result<Self, Error> {
        let given = match (is_encrypted, ca) {
            (true, Some(ca)) => Some(authorities(ca)?),
            (true, None) => None,
            (false, _) => Some(RootCertStore::empty()),
        };
        let config = OnceLock::new();
        Ok(Self { given, config })
    }

    /// Returns what encrypts connections.
    pub(crate) async fn connector(&self) -> Result<MakeRustlsConnect, Error> {
        if let Some(config) = self.config.get() {
            return Ok(MakeRustlsConnect::new(config.clone()));
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
        let config = self.config.get_or_init(|| config).clone();
        Ok(MakeRustlsConnect::new(config))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
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
    let found = CertificateDer::pem_file_iter(ca).map_err(|error| refuse(error.to_string()))?;
    for certificate in found {
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
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let text = "this machine has no list of certificate authorities: install ca-certificates, or name a file with \
                    &ca=";
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    Ok(roots)
}
