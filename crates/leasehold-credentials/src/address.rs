use std::fmt;
use std::net::IpAddr;

use percent_encoding::percent_decode_str;

/// The host and the port of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// A name or an address, in lower case and without brackets.
    pub host: String,
    /// From 1 to 65535.
    pub port: u16,
}

impl HostPort {
    /// Reads `host`, `host:port`, `[address]`, or `[address]:port`.
    ///
    /// # Errors
    ///
    /// The rule that the text breaks, without the text, which may be a part of a password.
    pub fn parse(text: &str, default_port: u16) -> Result<Self, String> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or("an IPv6 address without `]`")?;
                let port = port.strip_prefix(':').or(port.is_empty().then_some(""));
                (host, port)
            }
            None => match text.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, Some("")),
            },
        };
        let port = match port {
            Some("") => Some(default_port),
            port => port.and_then(|digits| digits.parse().ok()),
        };
        let port = port.filter(|port| *port > 0);
        let port = port.ok_or(
            "the port is not a number from 1 to 65535; a `,` in a password is written %2C, and `@`, `/`, `?` and `:` are \
             percent-encoded too",
        )?;
        if host.is_empty() {
            return Err("no host".into());
        }
        if host.contains(|c: char| c.is_control() || c.is_whitespace() || c == '@') {
            return Err("the host has a blank or another character that no host name has".into());
        }
        if host.contains(':') && !text.starts_with('[') {
            let rule = "an IPv6 address goes in brackets, and `/`, `?` and `:` in a password are percent-encoded";
            return Err(rule.into());
        }
        let host = host.to_ascii_lowercase();
        Ok(Self { host, port })
    }

    /// Returns whether the address is of this machine, so that no network can read what is sent.
    pub fn is_loopback(&self) -> bool {
        let address = self.host.parse::<IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        match host.contains(':') {
            true => write!(f, "[{host}]:{port}"),
            false => write!(f, "{host}:{port}"),
        }
    }
}

/// Decodes the percent-encoded bytes of a part of a URL.
///
/// # Errors
///
/// A rule, if they are not UTF-8.
pub fn percent_decoded(text: &str) -> Result<String, String> {
    let text = percent_decode_str(text).decode_utf8();
    Ok(text
        .map_err(|_| "a percent-encoded part is not UTF-8")?
        .into_owned())
}
