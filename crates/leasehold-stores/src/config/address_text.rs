//! Passwords and parameters in the text of an address, for stores of every kind.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Whether the address contains a password.
pub fn has_password(url: &str) -> bool {
    let (login, _) = login_and_hosts(url);
    let password = login.and_then(|login| login.split_once(':'));
    let in_login = password.is_some_and(|(_, password)| !password.is_empty());
    in_login || parameters(url).any(|(name, value)| name == "password" && !value.is_empty())
}

/// Returns the address with this password, unless it has a password or names a file with one. PostgreSQL takes a default
/// password apart from its address, because the user may be a parameter.
pub fn with_password(url: &str, password: &str) -> String {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    let Some(scheme) =
        scheme.filter(|scheme| !matches!(*scheme, "file" | "postgres" | "postgresql"))
    else {
        return url.to_owned();
    };
    let (login, rest) = login_and_hosts(url);
    let user = login.unwrap_or_default();
    if user.contains(':') || parameters(url).any(|(name, _)| name == "password_file") {
        return url.to_owned();
    }
    let password = utf8_percent_encode(password, NON_ALPHANUMERIC);
    format!("{scheme}://{user}:{password}@{rest}")
}

/// Returns the parameters of an address, not decoded.
pub fn parameters(url: &str) -> impl Iterator<Item = (&str, &str)> {
    let (_, query) = url.split_once('?').unwrap_or_default();
    query.split('&').filter_map(|pair| pair.split_once('='))
}

/// Returns the login of an address, and all that follows it.
fn login_and_hosts(url: &str) -> (Option<&str>, &str) {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => (Some(&rest[..at]), &rest[at + 1..]),
        None => (None, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_part_of_the_login() {
        for url in [
            "redis://u:p@a",
            "rediss://:p@a/1?id=x",
            "unix://u:p@/run/a",
            "postgres://a/app?user=u&password=p",
        ] {
            assert!(has_password(url), "{url}");
        }
        for url in [
            "redis://a:6379",
            "redis://u:@a",
            "file:///a:b@c",
            "redis://a?id=x:y@z",
            "redis://u@a?password_file=/p",
        ] {
            assert!(!has_password(url), "{url}");
        }
    }

    #[test]
    fn default_password_is_for_addresses_without_one() {
        for (url, with) in [
            ("redis://a:7000/2?id=x", "redis://:p%40%3A@a:7000/2?id=x"),
            ("rediss://ann@a,b", "rediss://ann:p%40%3A@a,b"),
            ("unix:///run/a.sock", "unix://:p%40%3A@/run/a.sock"),
            ("zk://ann@a/x?timeout=1s", "zk://ann:p%40%3A@a/x?timeout=1s"),
        ] {
            assert_eq!(with_password(url, "p@:"), with);
        }
        for url in [
            "redis://ann:@a",
            "redis://ann:own@a",
            "redis://a?password_file=/p",
            "postgres://ann@a/app",
            "file:///a",
            "b:2379",
        ] {
            assert_eq!(with_password(url, "p@:"), url);
        }
    }

    #[test]
    fn any_default_password_arrives_as_it_is() {
        let mut seed = 1_u64;
        for length in 0..200 {
            let mut random = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                char::from_u32((seed >> 40) as u32 % 0x500).unwrap_or('@')
            };
            let password: String = (0..length).map(|_| random()).collect();
            let url = with_password("redis://ann@a:1/2?id=x", &password);
            let (login, rest) = login_and_hosts(&url);
            let (user, encoded) = login.unwrap().split_once(':').unwrap();
            assert_eq!((user, rest), ("ann", "a:1/2?id=x"));
            let decoded = percent_encoding::percent_decode_str(encoded).decode_utf8();
            assert_eq!(decoded.unwrap(), password);
        }
    }
}
