use std::collections::BTreeMap;

use leasehold::store::is_printable;
use leasehold::{Error, Key};

use crate::parameters::given_twice;
use crate::{FileParameters, HostPort, Login, TlsSource, percent_decoded};

/// What the URLs of a store on servers look like: `scheme://login@host:port,host:port/path?parameter=value`.
///
/// # Examples
///
/// ```
/// use leasehold_credentials::{Scheme, UrlForm};
///
/// const FORM: UrlForm = UrlForm {
///     shape: "x://[user:password@]host[:port][?prefix=app/]",
///     schemes: &[("x", Scheme::Plain), ("xs", Scheme::Tls)],
///     default_port: 7000,
///     needs_user: true,
///     parameters: &["prefix"],
/// };
/// let (servers, prefix) = FORM.read("x://a,b:7001?prefix=app", |mut url| Ok((url.take_prefix()?, url.hosts)))?;
/// # Ok::<(), leasehold::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct UrlForm {
    /// The form in short. Every error shows it.
    pub shape: &'static str,
    /// The schemes.
    pub schemes: &'static [(&'static str, Scheme)],
    /// The port of a host without one.
    pub default_port: u16,
    /// Whether a login has a user.
    pub needs_user: bool,
    /// The parameters next to those of [`FileParameters`].
    pub parameters: &'static [&'static str],
}

/// What a scheme says of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// TCP without TLS.
    Plain,
    /// TLS.
    Tls,
    /// TLS if a parameter names a file for it, otherwise plain TCP.
    TlsIfNamed,
    /// A Unix socket, at the path of the URL.
    Socket,
}

/// A URL in its parts.
#[derive(Debug)]
#[non_exhaustive]
pub struct StoreUrl<'a> {
    /// Of the scheme.
    pub scheme: Scheme,
    /// The servers. A URL of a socket has none, and any other has at least one.
    pub hosts: Vec<HostPort>,
    /// What follows the first `/` after the hosts, not decoded.
    pub path: Option<&'a str>,
    /// The user and the password.
    pub login: Option<Login>,
    /// How to encrypt; `None` without TLS.
    pub tls: Option<TlsSource>,
    values: BTreeMap<&'a str, String>,
}

/// The advice for a URL in which a part of a password may be in the wrong place.
pub const ENCODED: &str =
    "`@`, `/`, `?`, `,` and `:` in a password, a path or a parameter are percent-encoded";

impl UrlForm {
    /// Reads `text`, and returns what `take` makes of its parts. Opens nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](leasehold::ErrorKind::InvalidInput), with the rule that `text` breaks, which may be one of
    /// `take`. The error shows nothing secret of `text`.
    pub fn read<T>(
        &self,
        text: &str,
        take: impl FnOnce(StoreUrl<'_>) -> Result<T, String>,
    ) -> Result<T, Error> {
        let read = self.parts(text).and_then(take);
        read.map_err(|rule| Error::invalid_url(text, &rule, self.shape))
    }

    fn parts<'a>(&self, text: &'a str) -> Result<StoreUrl<'a>, String> {
        let (name, rest) = text.split_once("://").ok_or("no scheme")?;
        let known = self.schemes.iter().find(|(known, _)| *known == name);
        let (_, scheme) = *known.ok_or("unknown scheme")?;
        let (body, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, path) = match body.split_once('/') {
            Some((place, path)) => (place, Some(path)),
            None => (body, None),
        };
        if path.is_some_and(|path| path.contains('@')) || query.contains('@') {
            // This may be the rest of a password, so nothing of it may be shown.
            return Err(ENCODED.into());
        }
        let (login, place) = match place.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, place),
        };
        // The hosts come first: if they are a part of a password, so is what follows them, and the rules below show that.
        let hosts = match (scheme, place) {
            (Scheme::Socket, "") if path.is_some_and(|path| !path.is_empty()) => Vec::new(),
            (Scheme::Socket, _) => {
                return Err("a Unix socket has an absolute path: three slashes".into());
            }
            _ => {
                let hosts = place.split(',');
                let hosts = hosts.map(|host| HostPort::parse(host, self.default_port));
                hosts.collect::<Result<_, _>>()?
            }
        };
        // A path with a colon may be a login of another server, and the parameters the rest of its password.
        let hides = path.is_some_and(|path| path.contains(':'));
        let shown = |rule| if hides { ENCODED.into() } else { rule };
        let (values, files) = self.parameters(query).map_err(shown)?;
        let login = files.login(login)?;
        if self.needs_user && login.as_ref().is_some_and(|login| login.user.is_empty()) {
            let rule = "no user: credentials are user:password@, or user@ with password_file=FILE";
            return Err(rule.into());
        }
        let is_encrypted = match scheme {
            Scheme::Plain | Scheme::Socket => false,
            Scheme::Tls => true,
            Scheme::TlsIfNamed => files.name_tls(),
        };
        let encrypted = self
            .schemes
            .iter()
            .find(|(_, scheme)| *scheme == Scheme::Tls);
        let encrypted = encrypted.map_or("", |(name, _)| name);
        let tls = files.tls(is_encrypted, &format!("{encrypted}://"))?;
        Ok(StoreUrl {
            scheme,
            hosts,
            path,
            login,
            tls: tls.map(Into::into),
            values,
        })
    }

    fn parameters<'a>(
        &self,
        query: &'a str,
    ) -> Result<(BTreeMap<&'a str, String>, FileParameters), String> {
        let (mut values, mut files) = (BTreeMap::new(), FileParameters::default());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decoded(value)?;
            if files.take(name, &value)? {
                continue;
            }
            if !self.parameters.contains(&name) {
                return Err(format!(
                    "unknown parameter {name:?}: {}, ca, cert, key and password_file are known",
                    self.parameters.join(", ")
                ));
            }
            if values.insert(name, value).is_some() {
                return Err(given_twice(name));
            }
        }
        Ok((values, files))
    }
}

impl StoreUrl<'_> {
    /// Takes the value of a parameter, decoded; `None` if the URL lacks it.
    pub fn take(&mut self, parameter: &str) -> Option<String> {
        self.values.remove(parameter)
    }

    /// Takes the value of a parameter that is a name: 1 to 128 bytes of printable characters.
    ///
    /// # Errors
    ///
    /// The rule that the value breaks.
    pub fn take_name(&mut self, parameter: &str) -> Result<Option<String>, String> {
        let Some(value) = self.take(parameter) else {
            return Ok(None);
        };
        let fits = !value.is_empty() && value.len() <= NAME_BYTES_MAX;
        if fits && value.chars().all(is_printable) {
            return Ok(Some(value));
        }
        Err(format!(
            "`{parameter}` is 1 to {NAME_BYTES_MAX} bytes of printable characters, not {value:?}"
        ))
    }

    /// Takes the value of the parameter `prefix`, which is in front of every key; empty if the URL lacks it.
    ///
    /// # Errors
    ///
    /// The rule that the value breaks. Together with some name, it must not make one of the library's own keys.
    pub fn take_prefix(&mut self) -> Result<String, String> {
        let value = self.take_name("prefix")?.unwrap_or_default();
        let reserved = Key::RESERVED_PREFIX;
        if value.starts_with(reserved) || (!value.is_empty() && reserved.starts_with(&value)) {
            return Err(format!(
                "`prefix` {value:?} could make keys that begin with {reserved:?}, which is reserved"
            ));
        }
        Ok(value)
    }
}

/// The longest name in a parameter, in bytes.
const NAME_BYTES_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use leasehold::ErrorKind;

    use super::*;
    use crate::{Password, TlsFiles};

    const FORM: UrlForm = UrlForm {
        shape: "x://host",
        schemes: &[
            ("x", Scheme::Plain),
            ("xs", Scheme::Tls),
            ("xi", Scheme::TlsIfNamed),
            ("unix", Scheme::Socket),
        ],
        default_port: 7000,
        needs_user: true,
        parameters: &["prefix", "id"],
    };

    fn shown(text: &str) -> String {
        let parts = FORM.read(text, |mut url| {
            let hosts: Vec<String> = url.hosts.iter().map(ToString::to_string).collect();
            let (path, prefix) = (url.path.map(ToOwned::to_owned), url.take_prefix()?);
            Ok(format!(
                "{} {path:?} {prefix:?} {:?}",
                hosts.join(","),
                url.tls
            ))
        });
        parts.unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn parts_of_each_scheme_are_read() {
        let tls = TlsFiles::default();
        for (text, parts) in [
            (
                "x://A,b:1,[::1]:3",
                r#"a:7000,b:1,[::1]:3 None "" None"#.to_owned(),
            ),
            (
                "x://a/?&prefix=a%2F&",
                r#"a:7000 Some("") "a/" None"#.into(),
            ),
            ("xi://a/b/c", r#"a:7000 Some("b/c") "" None"#.into()),
            ("xs://a", format!(r#"a:7000 None "" Some({tls:?})"#)),
            (
                "unix://u:p@/run/s?prefix=p",
                r#" Some("run/s") "p" None"#.into(),
            ),
        ] {
            assert_eq!(shown(text), parts, "{text}");
        }
        assert!(shown("xi://a?ca=/x").contains("/x"));
    }

    #[test]
    fn login_is_read_from_the_url_and_files() {
        let login = |text| FORM.read(text, |url| Ok(url.login)).unwrap();
        let of = |user: &str, password| {
            let user = user.to_owned();
            Some(Login { user, password })
        };
        assert_eq!(login("x://a"), None);
        assert_eq!(
            login("x://u:p%40@a,b"),
            of("u", Password::Text("p@".into()))
        );
        let file = of("u", Password::File("/p".into()));
        assert_eq!(login("x://u@a?password_file=/p"), file);
    }

    #[test]
    fn each_rule_is_named_without_a_password() {
        for (text, rule) in [
            ("", "no scheme"),
            ("u:hunter2@a", "no scheme"),
            ("y://u:hunter2@a", "unknown scheme"),
            ("x://", "no host"),
            ("x://a,,b", "no host"),
            ("x://a b", "a blank"),
            ("x://a:0", "1 to 65535"),
            ("x://u:hunter2@a:99999", "1 to 65535"),
            ("x://u:hunter2", "1 to 65535"),
            ("x://::1", "brackets"),
            ("x://[::1", "without `]`"),
            ("x://u:hun/ter2@a", "percent-encoded"),
            ("x://u:hun?ter2@a", "percent-encoded"),
            ("x://hunter2@a", "credentials are user:password@"),
            ("x://:hunter2@a", "no user"),
            ("x://a?password_file=/x", "no user"),
            ("x://u:hunter2@a?password_file=/x", "one of them"),
            (
                "x://a?password=hunter2",
                r#"unknown parameter "password": prefix, id, ca"#,
            ),
            ("x://a?id=a&id=hunter2", r#""id" is given twice"#),
            ("x://a?id=%FF", "not UTF-8"),
            ("x://a?prefix=", "`prefix` is 1 to 128 bytes"),
            ("x://a?prefix=lease", "reserved"),
            ("x://a?prefix=leasehold:x", "reserved"),
            ("x://a?ca=/x", "xs:// alone"),
            ("xs://a?cert=/x", "go together"),
            ("xs://a?ca=", "names no file"),
            ("unix://run/s", "three slashes"),
            ("unix:///", "three slashes"),
        ] {
            let error = FORM.read(text, |mut url| url.take_prefix()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            let shown = error.to_string();
            assert!(
                shown.contains(rule) && !shown.contains("ter2"),
                "{text}: {shown}"
            );
        }
    }
}
