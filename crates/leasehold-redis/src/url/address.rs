use std::fmt;
use std::path::PathBuf;

use leasehold_credentials::{HostPort, Scheme, percent_decoded};

/// The address on which a server listens. Two equal addresses are one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    Tcp { server: HostPort, tls: bool },
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { server, .. } => server.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

impl Address {
    /// Returns the address in the parts of a URL.
    pub(super) fn of(
        mut hosts: Vec<HostPort>,
        path: Option<&str>,
        scheme: Scheme,
    ) -> Result<Self, String> {
        let Some(server) = hosts.pop() else {
            return Self::of_socket(path.unwrap_or_default());
        };
        if !hosts.is_empty() {
            return Err("a URL names one server; several are a list of URLs".into());
        }
        let tls = scheme == Scheme::Tls;
        Ok(Self::Tcp { server, tls })
    }

    fn of_socket(path: &str) -> Result<Self, String> {
        if cfg!(not(unix)) {
            return Err("unix:// needs a system with Unix sockets; use redis://host".into());
        }
        let path = percent_decoded(path)?;
        if path.chars().any(char::is_control) {
            return Err("the path of a Unix socket has no control characters".into());
        }
        Ok(Self::Unix(PathBuf::from(format!("/{path}"))))
    }

    /// Whether both addresses lead to one server, judging by their text.
    pub(crate) fn same_server(&self, other: &Self) -> bool {
        // One server may listen with and without TLS, but not both on one port.
        self.to_string() == other.to_string()
    }
}
