use std::path::{Path, PathBuf};
use std::sync::Arc;

use leasehold::{Error, ErrorKind};
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::file;

/// The files for TLS, all in PEM: how the two sides of a connection prove who they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authorities of the servers; those of the machine if there is none.
    pub ca: Option<PathBuf>,
    /// The certificate of the client with its chain, and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// What the files contain.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Contents {
    ca: Option<Vec<u8>>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// A configuration, and what it was made of.
pub(super) struct Loaded {
    contents: Contents,
    roots: RootCertStore,
    pub(super) config: Arc<ClientConfig>,
}

impl TlsFiles {
    /// Reads the files, and makes a configuration of them. Returns the last one if nothing has changed. The authorities
    /// of the machine are read once.
    pub(super) fn load(
        &self,
        last: Option<Arc<Loaded>>,
        protocols: Vec<Vec<u8>>,
    ) -> Result<Arc<Loaded>, Error> {
        let contents = self.read()?;
        if let Some(last) = &last
            && last.contents == contents
        {
            return Ok(Arc::clone(last));
        }
        let roots = match (&self.ca, last) {
            (None, Some(last)) => last.roots.clone(),
            (None, None) => authorities_of_the_machine()?,
            (Some(_), _) => self.authorities(&contents)?,
        };
        let mut config = self.config(&contents, roots.clone())?;
        config.alpn_protocols = protocols;
        Ok(Arc::new(Loaded {
            contents,
            roots,
            config: Arc::new(config),
        }))
    }

    /// Checks that the files that are named can be used now.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`], naming the file and the rule that it breaks; [`ErrorKind::Unsupported`] in a build
    /// without TLS.
    pub fn check(&self) -> Result<(), Error> {
        let contents = self.read()?;
        let roots = self.authorities(&contents)?;
        self.config(&contents, roots).map(drop)
    }

    fn read(&self) -> Result<Contents, Error> {
        let ca = self.ca.as_deref().map(|ca| file::read("ca", ca));
        let identity = self.identity.as_ref().map(|(cert, key)| {
            Ok::<_, Error>((file::read("cert", cert)?, file::read("key", key)?))
        });
        Ok(Contents {
            ca: ca.transpose()?,
            identity: identity.transpose()?,
        })
    }

    fn authorities(&self, contents: &Contents) -> Result<RootCertStore, Error> {
        let mut roots = RootCertStore::empty();
        if let (Some(path), Some(pem)) = (&self.ca, &contents.ca) {
            for certificate in certificates("ca", path, pem)? {
                let added = roots.add(certificate);
                added.map_err(|error| no_certificates("ca", path, &error))?;
            }
        }
        Ok(roots)
    }

    fn config(&self, contents: &Contents, roots: RootCertStore) -> Result<ClientConfig, Error> {
        let builder = ClientConfig::builder_with_provider(provider()?)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::new(ErrorKind::Unsupported, format!("TLS: {error}")))?
            .with_root_certificates(roots);
        let (Some((cert, key)), Some((cert_pem, key_pem))) = (&self.identity, &contents.identity)
        else {
            return Ok(builder.with_no_client_auth());
        };
        let chain = certificates("cert", cert, cert_pem)?;
        let secret = PrivateKeyDer::from_pem_slice(key_pem).map_err(|error| {
            let rule = format!("{error}; expected a private key in PEM");
            file::unusable("key", key, &rule)
        })?;
        builder
            .with_client_auth_cert(chain, secret)
            .map_err(|error| {
                let rule = format!(
                    "{error}; expected the key of the certificate in {}",
                    cert.display()
                );
                file::unusable("key", key, &rule)
            })
    }
}

fn certificates(
    parameter: &str,
    path: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| no_certificates(parameter, path, &error))?;
    if found.is_empty() {
        return Err(no_certificates(parameter, path, &"no certificate in it"));
    }
    Ok(found)
}

fn no_certificates(parameter: &str, path: &Path, rule: &dyn std::fmt::Display) -> Error {
    let rule = format!("{rule}; expected PEM certificates");
    file::unusable(parameter, path, &rule)
}

fn authorities_of_the_machine() -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let text = "this machine has no list of certificate authorities: install ca-certificates, or name a file by \
                    the parameter ca=FILE";
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    Ok(roots)
}

/// The cryptography. It is passed on explicitly: a program may contain several, and a default of the process could be any.
#[cfg(feature = "ring")]
fn provider() -> Result<Arc<CryptoProvider>, Error> {
    Ok(Arc::new(
        tokio_rustls::rustls::crypto::ring::default_provider(),
    ))
}

#[cfg(all(feature = "aws-lc-rs", not(feature = "ring")))]
fn provider() -> Result<Arc<CryptoProvider>, Error> {
    Ok(Arc::new(
        tokio_rustls::rustls::crypto::aws_lc_rs::default_provider(),
    ))
}

#[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
fn provider() -> Result<Arc<CryptoProvider>, Error> {
    let text = "this build has no TLS; build it with the feature ring or aws-lc-rs";
    Err(Error::new(ErrorKind::Unsupported, text))
}
