use std::fmt;
use std::path::PathBuf;

use super::percent::decoded;

/// The address on which a server listens. Two equal addresses are one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    Tcp { host: String, port: u16, tls: bool },
    Unix(PathBuf),
}

const DEFAULT_PORT: u16 = 6379;

pub(super) fn tcp_address(place: &str, tls: bool) -> Result<Address, String> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or("an IPv6 address without `]`")?;
            (
                host,
                port.strip_prefix(':').or(port.is_empty().then_some("")),
            )
        }
        None => match place.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, Some("")),
        },
    };
    let bad_port = || "the port is not a number from 1 to 65535".to_owned();
    let port = match port.ok_or_else(bad_port)? {
        "" => DEFAULT_PORT,
        digits => digits.parse().map_err(|_| bad_port())?,
    };
    let plausible = |c: char| !c.is_control() && !c.is_whitespace() && c != '@';
    if host.is_empty() || !host.chars().all(plausible) || port == 0 {
        return Err(match (port, host) {
            (0, _) => bad_port(),
            (_, "") => "no host".into(),
            _ => "the host has a blank or another character that no host name has".into(),
        });
    }
    if host.contains(':') && !place.starts_with('[') {
        return Err(
            "an IPv6 address goes in brackets, and `/`, `?` and `:` in a password \
             are percent-encoded"
                .into(),
        );
    }
    let host = host.to_ascii_lowercase();
    Ok(Address::Tcp { host, port, tls })
}

pub(super) fn unix_address(place: &str, path: Option<&str>) -> Result<Address, String> {
    if cfg!(not(unix)) {
        return Err("unix:// needs a system with Unix sockets; use redis://host".into());
    }
    match path {
        Some(path) if place.is_empty() && !path.is_empty() => {
            let path = decoded(path)?;
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
