//! The URL of a store.

use leasehold::Error;
use leasehold_credentials::{ENCODED, Scheme, UrlForm};

use crate::settings::Settings;

const FORM: UrlForm = UrlForm {
    shape: "etcd://[user:password@]host[:port][,host[:port]…], etcds:// for TLS, with the parameters prefix, ca, cert, \
            key and password_file",
    schemes: &[("etcd", Scheme::TlsIfNamed), ("etcds", Scheme::Tls)],
    default_port: 2379,
    needs_user: true,
    parameters: &["prefix"],
};

impl Settings {
    /// Parses a URL. Opens nothing.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        FORM.read(text, |mut url| {
            if url.path.is_some_and(|path| !path.is_empty()) {
                return Err(format!("it has no path; {ENCODED}"));
            }
            Ok(Self {
                prefix: url.take_prefix()?,
                servers: url.hosts,
                login: url.login,
                tls: url.tls,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use leasehold::ErrorKind;
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
            ("http://h", "unknown scheme"),
            ("etcd://a,,b", "no host"),
            ("etcd://h/0", "no path"),
            ("etcd://:secret@h", "no user"),
            ("etcd://h?tls=1", r#"unknown parameter "tls""#),
            ("etcd://h?prefix=lease", "reserved"),
            ("etcds://h?cert=/dev/null", "go together"),
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
