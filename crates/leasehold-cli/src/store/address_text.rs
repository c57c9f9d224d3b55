//! The text of an address for messages.

/// The address with `***` in place of user and password.
pub(crate) fn without_login(url: &str) -> String {
    let (scheme, rest) = url
        .split_once("://")
        .map_or(("", url), |(s, rest)| (s, rest));
    let (place, query) = rest
        .split_once('?')
        .map_or((rest, None), |(p, q)| (p, Some(q)));
    let Some((_, place)) = place.rsplit_once('@') else {
        return url.to_owned();
    };
    let scheme = if scheme.is_empty() {
        String::new()
    } else {
        format!("{scheme}://")
    };
    let query = query.map_or(String::new(), |query| format!("?{query}"));
    format!("{scheme}***@{place}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_passwords() {
        for (url, shown) in [
            ("redis://a:7000/2?id=x", "redis://a:7000/2?id=x"),
            ("redis://u:se@cret@a?id=x", "redis://***@a?id=x"),
            ("unix://:secret@/run/a.sock", "unix://***@/run/a.sock"),
            ("u:secret@a:6379", "***@a:6379"),
        ] {
            assert_eq!(without_login(url), shown);
        }
    }
}
