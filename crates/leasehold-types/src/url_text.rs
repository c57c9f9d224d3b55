//! The text of a URL for messages.

/// Returns a URL without anything secret, even if the URL is too broken to parse. A password may be the text before the last
/// `@`, a parameter, or what follows a colon without a port, where the `@` is still missing.
pub fn without_secrets(url: &str) -> String {
    let is_scheme = |scheme: &str| scheme.bytes().all(|b| b.is_ascii_alphanumeric());
    let rest = match url.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => rest,
        _ => url.strip_prefix("file:").unwrap_or(url),
    };
    let scheme = &url[..url.len() - rest.len()];
    let (hidden, rest) = match rest.rsplit_once('@') {
        Some((_, place)) => ("…@", place),
        None => ("", rest),
    };
    let shown = rest.split('?').next().unwrap_or_default();
    let (shown, end) = match colon_without_port(shown) {
        Some(colon) => (&shown[..=colon], "…"),
        None => (shown, ""),
    };
    format!("{scheme}{hidden}{shown}{end}")
}

/// Returns the place of the first colon that no port follows. The colons of an IPv6 address in brackets do not count.
fn colon_without_port(text: &str) -> Option<usize> {
    let mut colons = text.match_indices(':').map(|(at, _)| at);
    colons.find(|at| {
        let after = text[at + 1..].split([',', '/']).next();
        !is_in_address(text, *at) && after.is_none_or(|port| port.parse::<u16>().is_err())
    })
}

/// Whether the place is in an IPv6 address in brackets.
fn is_in_address(text: &str, at: usize) -> bool {
    let inner = text[..at].rsplit_once('[').zip(text[at..].split_once(']'));
    inner.is_some_and(|((_, head), (tail, _))| {
        let address = format!("{head}{tail}");
        address.parse::<std::net::Ipv6Addr>().is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_paths_are_shown() {
        for url in [
            "redis://a:7000/2",
            "etcd://A:1,b,[::1]:3",
            "rediss://[fe80::1]",
            "a:6379",
            "unix:///run/a.sock",
            "file:/a/b",
            "file:a",
        ] {
            assert_eq!(without_secrets(url), url);
        }
    }

    #[test]
    fn what_may_be_a_password_is_hidden() {
        for (url, shown) in [
            ("redis://u:se@cret@a:1/2?id=x", "redis://…@a:1/2"),
            ("redis://u:secret", "redis://u:…"),
            ("redis://u:12345678", "redis://u:…"),
            ("redis://u:secret/2", "redis://u:…"),
            ("redis://u:p@a:secret", "redis://…@a:…"),
            ("zk://a:1,u:secret,b", "zk://a:1,u:…"),
            ("redis://u:[::1]secret", "redis://u:…"),
            ("redis://[u:secret]", "redis://[u:…"),
            ("u:secret://a", "u:…"),
            ("file://u:secret@/x", "file://…@/x"),
            ("file:u:secret", "file:u:…"),
        ] {
            assert_eq!(without_secrets(url), shown, "{url}");
        }
    }
}
