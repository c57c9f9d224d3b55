//! The addresses of the servers, and how to talk to them.

use std::fmt;

use leasehold::{Error, ErrorKind};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

/// What the URL of a store says.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) servers: Vec<Server>,
    pub(crate) login: Option<Login>,
    pub(crate) tls: Option<Tls>,
    /// In front of every key.
    pub(crate) prefix: String,
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// A user and a password.
#[derive(Clone)]
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) password: String,
}

/// How the servers and the client prove who they are.
#[derive(Clone)]
pub(crate) struct Tls {
    /// The authorities, in PEM; `None` for those of the machine.
    pub(crate) ca: Option<Vec<u8>>,
    /// The certificate of the client, and its key, in PEM.
    pub(crate) identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl Settings {
    /// Returns how to connect to `server`.
    pub(crate) fn endpoint(&self, server: &Server) -> Result<Endpoint, Error> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let refuse = |error: tonic::transport::Error| {
            let text = format!("{server}: {error}");
            Error::new(ErrorKind::InvalidInput, text).with_source(error)
        };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{server}")).map_err(refuse)?;
        let endpoint = endpoint.tcp_nodelay(true);
        let Some(tls) = &self.tls else {
            return Ok(endpoint);
        };
        let mut config = ClientTlsConfig::new().domain_name(server.host.clone());
        config = match &tls.ca {
            Some(pem) => config.ca_certificate(Certificate::from_pem(pem)),
            None => config.with_native_roots(),
        };
        if let Some((certificate, key)) = &tls.identity {
            config = config.identity(Identity::from_pem(certificate, key));
        }
        endpoint.tls_config(config).map_err(refuse)
    }
}

/// Names the store: its servers, and the prefix of its locks. No credentials.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<String> = self.servers.iter().map(Server::to_string).collect();
        write!(f, "etcd {}", servers.join(","))?;
        if !self.prefix.is_empty() {
            write!(f, ", prefix {:?}", self.prefix)?;
        }
        Ok(())
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') {
            write!(f, "[{host}]:{port}")
        } else {
            write!(f, "{host}:{port}")
        }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("has_ca", &self.ca.is_some())
            .field("has_identity", &self.identity.is_some())
            .finish()
    }
}
