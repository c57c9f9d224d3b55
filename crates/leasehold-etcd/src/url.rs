//! The URL of a store.

use leasehold::store::without_secrets;
use leasehold::{Error, ErrorKind};
use leasehold_credentials::{
    FileParameters, HostPort, TlsFiles, checked_prefix, parameters, split_login,
};

use crate::settings::Settings;

/// The required form. Every refusal shows it.
const SHAPE: &str = "etcd://[user:password@]host[:port][,host[:port]…], etcds:// for TLS, with the parameters \
     prefix, ca, cert, key and password_file";

const DEFAULT_PORT: u16 = 2379;

/// The parameters after the `?`.
#[derive(Default)]
struct Query {
    prefix: Option<String>,
    files: FileParameters,
}

impl Settings {
    /// Parses a URL. Opens nothing.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        Self::read(text).map_err(|rule| {
            let shown = without_secrets(text);
            let message = format!("store URL {shown:?}: {rule}; expected {SHAPE}");
            Error::new(ErrorKind::InvalidInput, message)
        })
    }

    fn read(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").ok_or("no scheme")?;
        let is_secure = match scheme {
            "etcd" => false,
            "etcds" => true,
            _ => return Err("unknown scheme".into()),
        };
        let (body, query) = rest.split_once('?').unwrap_or((rest, ""));
        let body = body.strip_suffix('/').unwrap_or(body);
        if body.contains('/') || query.contains('@') {
            // This may be the rest of a password, so nothing of it may be shown.
            return Err(
                "it has no path; `@`, `/`, `?`, `,` and `:` in a password or a parameter are \
                 percent-encoded"
                    .into(),
            );
        }
        let (login, hosts) = split_login(body);
        let servers = hosts
            .split(',')
            .map(|server| HostPort::parse(server, DEFAULT_PORT))
            .collect::<Result<_, _>>()?;
        let query = Query::read(query)?;
        let login = query.files.login(login)?;
        if login.as_ref().is_some_and(|login| login.user.is_empty()) {
            return Err(
                "no user: credentials are user:password@, or user@ with password_file=FILE".into(),
            );
        }
        let tls = query.tls(is_secure)?;
        Ok(Self {
            servers,
            login,
            tls: tls.map(Into::into),
            prefix: query.prefix.unwrap_or_default(),
        })
    }
}

impl Query {
    fn read(text: &str) -> Result<Self, String> {
        let mut query = Self::default();
        for parameter in parameters(text) {
            let (name, value) = parameter?;
            if query.files.take(name, &value)? {
                continue;
            }
            if name != "prefix" {
                return Err(format!(
                    "unknown parameter {name:?}: prefix, ca, cert, key and password_file are known"
                ));
            }
            if query.prefix.replace(checked_prefix(value)?).is_some() {
                return Err(format!("the parameter {name:?} is given twice"));
            }
        }
        Ok(query)
    }

    /// Returns how to encrypt. The name of a file says that the connection is encrypted, like the scheme.
    fn tls(&self, is_secure: bool) -> Result<Option<TlsFiles>, String> {
        self.files
            .tls(is_secure || self.files.name_tls(), "etcds://")
    }
}

#[cfg(test)]
mod tests {
    use leasehold_credentials::Password;

    use super::*;

    fn parsed(text: &str) -> Settings {
        Settings::parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn refusal(text: &str) -> String {
        let error = Settings::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.to_string()
    }

    #[test]
    fn servers_are_listed_with_their_ports() {
        for (text, shown) in [
            ("etcd://127.0.0.1", "etcd 127.0.0.1:2379"),
            ("etcd://A:1,b,[::1]:3/", "etcd a:1,b:2379,[::1]:3"),
            ("etcds://h?prefix=app%2F", "etcd h:2379, prefix \"app/\""),
        ] {
            assert_eq!(parsed(text).to_string(), shown);
        }
        assert!(parsed("etcds://h").tls.is_some());
        assert!(parsed("etcd://h").tls.is_none());
    }

    #[test]
    fn credentials_are_decoded_and_not_shown() {
        let settings = parsed("etcd://ann:p%40%2Cter2@h,i");
        let login = settings.login.as_ref().unwrap();
        assert_eq!(login.user, "ann");
        assert_eq!(login.password, Password::Text("p@,ter2".into()));
        let settings = parsed("etcd://ann@h?password_file=/p%20w");
        let password = settings.login.unwrap().password;
        assert_eq!(password, Password::File("/p w".into()));
        let settings = parsed("etcd://ann:p%40%2Cter2@h,i");
        assert_eq!(settings.servers.len(), 2);
        assert!(!format!("{settings:?} {settings}").contains("ter2"));
    }

    #[test]
    fn broken_urls_are_refused_with_their_rule() {
        for (text, rule) in [
            ("h:2379", "no scheme"),
            ("http://h", "unknown scheme"),
            ("etcd://", "no host"),
            ("etcd://a,,b", "no host"),
            ("etcd://a b", "a blank"),
            ("etcd://h:0", "1 to 65535"),
            ("etcd://h:x", "1 to 65535"),
            ("etcd://::1", "brackets"),
            ("etcd://[::1", "without `]`"),
            ("etcd://h/0", "no path"),
            ("etcd://ann@h", "user:password@"),
            ("etcd://:secret@h", "user:password@"),
            ("etcd://h?tls=1", r#"unknown parameter "tls""#),
            ("etcd://h?prefix=a&prefix=b", "is given twice"),
            ("etcd://h?prefix=", "1 to 128 bytes"),
            ("etcd://h?prefix=lease", "reserved"),
            ("etcds://h?cert=/dev/null", "go together"),
            ("etcd://u:pw@h?password_file=/x", "one of them"),
            ("etcd://h?password_file=/x", "user@"),
        ] {
            let message = refusal(text);
            assert!(message.contains(rule), "{text}: {message}");
        }
    }

    #[test]
    fn no_refusal_shows_a_password() {
        for text in [
            "etcd://u:hunter2@h:x",
            "etcd://u:hun/ter2@h",
            "etcd://u:hunter2@",
            "u:hunter2@h",
            "etcd://h?password=hunter2",
            "etcd://u:hun?ter2@h",
            "etcd://hunter2@h",
        ] {
            let message = refusal(text);
            assert!(!message.contains("ter2"), "{message}");
        }
    }
}
