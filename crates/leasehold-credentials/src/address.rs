use std::fmt;
use std::net::IpAddr;

use leasehold::Key;
use leasehold::store::is_printable;
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

/// Splits the login from the hosts of a URL, at the last `@`.
pub fn split_login(text: &str) -> (Option<&str>, &str) {
    match text.rsplit_once('@') {
        Some((login, hosts)) => (Some(login), hosts),
        None => (None, text),
    }
}

/// Returns the names and the decoded values of the parameters of a URL, which come after its `?`.
pub fn parameters(query: &str) -> impl Iterator<Item = Result<(&str, String), String>> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((name, percent_decoded(value)?))
    })
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

/// The longest name in a parameter, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// Returns the value of a parameter that is a name.
///
/// # Errors
///
/// The rule that the value breaks.
pub fn checked_name(parameter: &str, value: String) -> Result<String, String> {
    let fits = !value.is_empty() && value.len() <= NAME_BYTES_MAX;
    if fits && value.chars().all(is_printable) {
        return Ok(value);
    }
    Err(format!(
        "`{parameter}` is 1 to {NAME_BYTES_MAX} bytes of printable characters, not {value:?}"
    ))
}

/// Returns the value of the parameter `prefix`, which is in front of every key.
///
/// # Errors
///
/// The rule that the value breaks. Together with some name, it must not make one of the library's own keys.
pub fn checked_prefix(value: String) -> Result<String, String> {
    let value = checked_name("prefix", value)?;
    let reserved = Key::RESERVED_PREFIX;
    if value.starts_with(reserved) || reserved.starts_with(&value) {
        return Err(format!(
            "`prefix` {value:?} could make keys that begin with {reserved:?}, which is reserved"
        ));
    }
    Ok(value)
}
