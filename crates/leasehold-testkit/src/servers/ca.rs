use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
};
use tempfile::TempDir;

/// A certificate authority for tests, with one certificate for the loopback address.
#[derive(Debug)]
pub struct TestCa {
    dir: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl TestCa {
    /// Creates a new authority. No other authority trusts what it signs.
    ///
    /// # Panics
    ///
    /// If the keys cannot be created or written.
    pub fn new() -> Self {
        Self::try_new().unwrap_or_else(|error| panic!("a test CA could not be made: {error}"))
    }

    fn try_new() -> Result<Self, Box<dyn std::error::Error>> {
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority
            .distinguished_name
            .push(DnType::CommonName, "Leasehold test CA");
        let authority_key = KeyPair::generate()?;
        let authority_cert = authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(authority, authority_key);

        let server = CertificateParams::new(vec!["localhost".into(), "127.0.0.1".into()])?;
        let server_key = KeyPair::generate()?;
        let server_cert = server.signed_by(&server_key, &issuer)?;

        let dir = tempfile::Builder::new().prefix("leasehold-ca-").tempdir()?;
        fs::write(dir.path().join("ca.pem"), authority_cert.pem())?;
        fs::write(dir.path().join("server.pem"), server_cert.pem())?;
        fs::write(dir.path().join("server.key"), server_key.serialize_pem())?;
        Ok(Self { dir, issuer })
    }

    /// Returns the path of the authority's certificate, for clients.
    pub fn certificate(&self) -> PathBuf {
        self.file("ca.pem")
    }

    /// Returns the path of the certificate for the loopback address. Clients can use it too.
    pub fn server_certificate(&self) -> PathBuf {
        self.file("server.pem")
    }

    /// Returns the path of the key of that certificate.
    pub fn server_key(&self) -> PathBuf {
        self.file("server.key")
    }

    /// Signs a certificate of a client, whose common name is `name`. Returns the paths of the certificate and of its key.
    ///
    /// # Panics
    ///
    /// If they cannot be created or written.
    pub fn sign_client(&self, name: &str) -> (PathBuf, PathBuf) {
        let signed = self.try_sign_client(name);
        signed.unwrap_or_else(|error| panic!("no certificate for {name:?} could be made: {error}"))
    }

    fn try_sign_client(
        &self,
        name: &str,
    ) -> Result<(PathBuf, PathBuf), Box<dyn std::error::Error>> {
        let mut client = CertificateParams::new(Vec::new())?;
        client.distinguished_name = DistinguishedName::new();
        client.distinguished_name.push(DnType::CommonName, name);
        let pair = KeyPair::generate()?;
        let paths = (
            self.file(&format!("{name}.pem")),
            self.file(&format!("{name}.key")),
        );
        fs::write(&paths.0, client.signed_by(&pair, &self.issuer)?.pem())?;
        fs::write(&paths.1, pair.serialize_pem())?;
        Ok(paths)
    }

    fn file(&self, name: &str) -> PathBuf {
        let dir: &Path = self.dir.path();
        dir.join(name)
    }
}

impl Default for TestCa {
    fn default() -> Self {
        Self::new()
    }
}
