use std::fmt;
use std::path::PathBuf;

use leasehold_credentials::{HostPort, percent_decoded};

/// The address on which a server listens. Two equal addresses are one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    Tcp { host: String, port: u16, tls: bool },
    Unix(PathBuf),
}

const DEFAULT_PORT: u16 = 6379;

pub(super) fn tcp_address(place: &str, tls: bool) -> Result<Address, String> {
    let HostPort { host, port } = HostPort::parse(place, DEFAULT_PORT)?;
    Ok(Address::Tcp { host, port, tls })
}

pub(super) fn unix_address(place: &str, path: Option<&str>) -> Result<Address, String> {
    if cfg!(not(unix)) {
        return Err("unix:// needs a system with Unix sockets; use redis://host".into());
    }
    match path {
        Some(path) if place.is_empty() && !path.is_empty() => {
            let path = percent_decoded(path)?;
            if path.chars().any(char::is_control) {
                return Err("the path of a Unix socket has no control characters".into());
            }
            Ok(Address::Unix(PathBuf::from(format!("/{path}"))))
        }
        _ => Err("a Unix socket has an absolute path: three slashes".into()),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port, .. } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port, .. } => write!(f, "{host}:{port}"),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

impl Address {
    /// Whether both addresses lead to one server, judging by their text.
    pub(crate) fn same_server(&self, other: &Self) -> bool {
        // One server may listen with and without TLS, but not both on one port.
        self.to_string() == other.to_string()
    }
}
