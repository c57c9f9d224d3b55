//! The URL of an ensemble.

use std::fmt;
use std::time::Duration;

use leasehold::Error;
use leasehold_credentials::{HostPort, Login, Scheme, TlsSource, UrlForm, percent_decoded};

/// The servers of an ensemble, where its locks are, and how to log in.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct EnsembleUrl {
    pub(crate) servers: Vec<HostPort>,
    /// The node under which all locks are: `/` or a path without a slash at its end.
    pub(crate) root: String,
    /// The user and the password, for the scheme `digest`.
    pub(crate) login: Option<Login>,
    /// The session timeout to ask for; that of the first request if there is none.
    pub(crate) timeout: Option<Duration>,
    /// How to encrypt; `None` for plain TCP.
    pub(crate) tls: Option<TlsSource>,
}

const FORM: UrlForm = UrlForm {
    shape: "zk://[user:password@]host[:port][,host..][/path][?timeout=10s], or zks:// for TLS",
    schemes: &[
        ("zk", Scheme::Plain),
        ("zookeeper", Scheme::Plain),
        ("zks", Scheme::Tls),
    ],
    default_port: 2181,
    needs_user: true,
    parameters: &["timeout"],
};

/// The node of the locks where the URL has no path.
const DEFAULT_ROOT: &str = "/leasehold";

impl EnsembleUrl {
    /// Parses `text` and checks every part of it. Opens nothing.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        FORM.read(text, |mut url| {
            // The server takes the text before the first colon for the user.
            if url
                .login
                .as_ref()
                .is_some_and(|login| login.user.contains(':'))
            {
                return Err("the user has a colon".into());
            }
            let timeout = url.take("timeout");
            Ok(Self {
                servers: url.hosts,
                root: read_root(url.path)?,
                login: url.login,
                timeout: timeout.as_deref().map(read_timeout).transpose()?,
                tls: url.tls,
            })
        })
    }

    /// The servers, without anything secret.
    pub(crate) fn hosts(&self) -> Vec<String> {
        self.servers.iter().map(ToString::to_string).collect()
    }
}

/// The place of the locks, without credentials.
impl fmt::Display for EnsembleUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ZooKeeper {} at {}", self.root, self.hosts().join(","))
    }
}

impl fmt::Debug for EnsembleUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnsembleUrl")
            .field("place", &self.to_string())
            .field("timeout", &self.timeout)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

fn read_root(path: Option<&str>) -> Result<String, String> {
    let path = match path {
        None => return Ok(DEFAULT_ROOT.into()),
        Some(path) => percent_decoded(path.trim_end_matches('/'))?,
    };
    let is_valid = |part: &str| {
        !part.is_empty()
            && part != "."
            && part != ".."
            && !part.chars().any(crate::queue::is_forbidden)
    };
    if !path.is_empty() && !path.split('/').all(is_valid) {
        return Err(
            "the path has an empty part, a dot alone, or a character that no node may have".into(),
        );
    }
    Ok(format!("/{path}"))
}

fn read_timeout(text: &str) -> Result<Duration, String> {
    let (digits, unit) = match text.strip_suffix("ms") {
        Some(digits) => (digits, 1),
        None => (text.strip_suffix('s').unwrap_or_default(), 1000),
    };
    let millis = digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(unit));
    let in_range = millis.filter(|millis| (1..=i32::MAX as u64).contains(millis));
    let millis = in_range.ok_or("`timeout` is a number with the unit ms or s, such as 10s")?;
    Ok(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use leasehold::ErrorKind;
    use leasehold_credentials::{Password, TlsFiles};

    use super::*;

    fn parsed(text: &str) -> EnsembleUrl {
        EnsembleUrl::parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn servers_and_paths_of_each_form() {
        for (text, shown) in [
            ("zk://A", "ZooKeeper /leasehold at a:2181"),
            (
                "zookeeper://a:1,b,[::1]:3/locks/x/",
                "ZooKeeper /locks/x at a:1,b:2181,[::1]:3",
            ),
            ("zk://u:pw@a/", "ZooKeeper / at a:2181"),
            ("zks://[::1]/%C3%A9", "ZooKeeper /é at [::1]:2181"),
        ] {
            assert_eq!(parsed(text).to_string(), shown, "{text}");
        }
        let url = parsed("zks://u:p%40%2F%3A@a?timeout=400ms&ca=/x&cert=/c&key=/k");
        let login = |user: &str, password| {
            let user = user.to_owned();
            Some(Login { user, password })
        };
        assert_eq!(url.login, login("u", Password::Text("p@/:".into())));
        assert_eq!(url.timeout, Some(Duration::from_millis(400)));
        let files = TlsFiles {
            ca: Some("/x".into()),
            identity: Some(("/c".into(), "/k".into())),
        };
        assert_eq!(url.tls, Some(files.into()));
        let url = parsed("zk://ann@a,b/x?password_file=/p%20w");
        assert_eq!(url.login, login("ann", Password::File("/p w".into())));
    }

    #[test]
    fn each_rule_is_named() {
        for (text, rule) in [
            ("http://a", "unknown scheme"),
            ("zk://a,,b", "no host"),
            ("zk://:pw@a", "no user"),
            ("zk://u%3Av:pw@a", "the user has a colon"),
            ("zk://a//b", "an empty part"),
            ("zk://a/x/../b", "a dot alone"),
            ("zk://a?timeout=10", "the unit ms or s"),
            ("zk://a?timeout=0s", "the unit ms or s"),
            ("zk://a?ca=/x", "zks:// alone"),
            ("zk://a?x=1", r#"unknown parameter "x""#),
            ("zk://a/%FF", "not UTF-8"),
        ] {
            let error = EnsembleUrl::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(rule), "{text}: {error}");
        }
    }

    #[test]
    fn passwords_are_never_shown() {
        for text in [
            "zk://u:hunter2@a:x",
            "zk://u:hun/ter2@a",
            "u:hunter2@a",
            "zk://u:hunter2@",
        ] {
            let error = EnsembleUrl::parse(text).unwrap_err().to_string();
            assert!(!error.contains("ter2"), "{error}");
        }
        let url = parsed("zk://u:hunter2@a");
        assert!(!format!("{url} {url:?}").contains("hunter2"));
    }
}
