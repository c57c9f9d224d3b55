mod address;
mod list;

use std::fmt;

use leasehold::Error;
use leasehold::member::MemberId;
use leasehold_credentials::{Login, Scheme, StoreUrl, TlsSource, UrlForm};

pub(crate) use address::Address;
pub(crate) use list::MEMBERS_MAX;
pub use list::parse_all;

/// The address of a server and the credentials for it, as given in a URL.
#[derive(Clone, Debug)]
pub struct RedisUrl {
    pub(crate) address: Address,
    pub(crate) login: Option<Login>,
    pub(crate) database: u32,
    pub(crate) id: MemberId,
    pub(crate) prefix: String,
    /// The files for TLS; `None` without TLS.
    pub(crate) tls: Option<TlsSource>,
    /// Whether the server may evict locks.
    pub(crate) accepts_eviction: bool,
}

const FORM: UrlForm = UrlForm {
    shape: "redis://[user:password@]host[:port][/database], rediss:// for TLS, or unix://[user:password@]/path",
    schemes: &[
        ("redis", Scheme::Plain),
        ("valkey", Scheme::Plain),
        ("rediss", Scheme::Tls),
        ("valkeys", Scheme::Tls),
        ("unix", Scheme::Socket),
    ],
    default_port: 6379,
    needs_user: false,
    parameters: &["id", "prefix", "evicting", "db"],
};

impl RedisUrl {
    /// Parses `text` and checks every part of it. Opens nothing.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        FORM.read(text, Self::of)
    }

    fn of(mut url: StoreUrl<'_>) -> Result<Self, String> {
        let (id, db) = (url.take_name("id")?, url.take("db"));
        let prefix = url.take_prefix()?;
        let evicting = url.take("evicting");
        if let Some(value) = evicting.as_ref().filter(|value| *value != "accept") {
            return Err(format!("`evicting` is accept, not {value:?}"));
        }
        let database = match url.scheme {
            Scheme::Socket => db.as_deref(),
            _ if db.is_some() => return Err("`db` belongs to unix://; write /database".into()),
            _ => url.path,
        };
        let database = match database.unwrap_or_default() {
            "" => 0,
            number => number
                .parse()
                .map_err(|_| format!("the database {number:?} is not a number"))?,
        };
        let address = Address::of(url.hosts, url.path, url.scheme)?;
        Ok(Self {
            id: MemberId::new(id.unwrap_or_else(|| address.to_string())).at(address.to_string()),
            address,
            login: url.login,
            database,
            prefix,
            tls: url.tls,
            accepts_eviction: evicting.is_some(),
        })
    }
}

/// For messages: the address of the member, and its id if that differs. No credentials.
impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

impl RedisUrl {
    /// Checks the files that are named: one that cannot be used is the caller's error.
    pub(crate) fn check_files(&self) -> Result<(), Error> {
        leasehold_credentials::check_files(self.tls.as_ref(), self.login.as_ref())
    }

    /// Returns the member, and the database and prefix of its locks. In another database, or under another
    /// prefix, there are other locks.
    pub(crate) fn room(&self) -> String {
        let mut room = self.id.as_str().to_owned();
        if self.database != 0 {
            room += &format!(", database {}", self.database);
        }
        if !self.prefix.is_empty() {
            room += &format!(", prefix {:?}", self.prefix);
        }
        room
    }
}

/// Returns the name of the user for messages.
pub(crate) fn user_of(login: Option<&Login>) -> &str {
    let user = login.map_or("", |login| login.user.as_str());
    if user.is_empty() { "default" } else { user }
}

#[cfg(test)]
mod tests {
    use leasehold::ErrorKind;
    use leasehold_credentials::{Password, TlsFiles};

    use super::*;

    fn parsed(text: &str) -> RedisUrl {
        RedisUrl::parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn refusal(text: &str) -> String {
        let error = RedisUrl::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.to_string()
    }

    #[test]
    fn addresses_of_every_scheme() {
        for (text, id) in [
            ("redis://127.0.0.1", "127.0.0.1:6379"),
            ("valkey://Cache:7000/2", "cache:7000"),
            ("rediss://db.example:6380/", "db.example:6380"),
            ("redis://[::1]:7001", "[::1]:7001"),
            ("redis://[::1]", "[::1]:6379"),
            ("unix:///run/redis.sock?db=3", "/run/redis.sock"),
            ("unix://u:p@/run/my%20redis.sock", "/run/my redis.sock"),
            ("redis://10.0.0.1?id=east", "east"),
        ] {
            assert_eq!(parsed(text).id.as_str(), id, "{text}");
        }
        assert_eq!(parsed("redis://h/15").database, 15);
        assert_eq!(parsed("unix:///s?db=3").database, 3);
        assert_eq!(parsed("redis://h?prefix=app%3A").prefix, "app:");
        let tls = parsed("rediss://h?ca=/etc/ca.pem&cert=/c&key=/k").tls;
        let files = TlsFiles {
            ca: Some("/etc/ca.pem".into()),
            identity: Some(("/c".into(), "/k".into())),
        };
        assert_eq!(tls, Some(files.into()));
        assert_eq!(parsed("redis://h").tls, None);
    }

    #[test]
    fn locks_of_another_database_or_prefix_are_elsewhere() {
        for (text, room) in [
            ("redis://u:pw@h", "h:6379"),
            ("redis://h/0", "h:6379"),
            ("redis://h/3?id=east", "east, database 3"),
            ("redis://h?prefix=a%22", r#"h:6379, prefix "a\"""#),
            (
                "unix://u:pw@/s?db=1&prefix=a",
                r#"/s, database 1, prefix "a""#,
            ),
        ] {
            assert_eq!(parsed(text).room(), room, "{text}");
        }
    }

    #[test]
    fn credentials_are_decoded() {
        let login = parsed("redis://ann:p%40%2F%3A@h").login.unwrap();
        assert_eq!(login.user, "ann");
        assert_eq!(login.password, Password::Text("p@/:".into()));
        let login = parsed("redis://:only@h").login.unwrap();
        assert_eq!(user_of(Some(&login)), "default");
        assert_eq!(login.password, Password::Text("only".into()));
    }

    #[test]
    fn password_may_be_in_a_file() {
        for (text, user) in [
            ("redis://h?password_file=/p%20w", ""),
            ("redis://ann@h?password_file=/p%20w", "ann"),
            ("unix://ann@/s?db=1&password_file=/p%20w", "ann"),
        ] {
            let login = parsed(text).login.unwrap();
            assert_eq!(login.user, user, "{text}");
            assert_eq!(login.password, Password::File("/p w".into()));
        }
    }

    #[test]
    fn each_rule_is_named() {
        for (text, rule) in [
            ("http://h", "unknown scheme"),
            ("redis://", "no host"),
            ("redis://a,b", "names one server"),
            ("redis://h/one", r#"database "one" is not a number"#),
            ("redis://h/-1", r#"database "-1" is not a number"#),
            ("redis://h?db=1", "write /database"),
            ("redis://user@h", "user:password@"),
            ("redis://h?insecure=1", r#"unknown parameter "insecure""#),
            ("redis://h?id=", "1 to 128 bytes"),
            ("redis://h?prefix=lease", "reserved"),
            (
                "redis://h?evicting=yes",
                "`evicting` is accept, not \"yes\"",
            ),
            ("redis://h?cert=/x&key=/y", "rediss:// alone"),
            ("unix://run/redis.sock", "three slashes"),
            ("unix:///run/a%0Ab", "control characters"),
        ] {
            let message = refusal(text);
            assert!(message.contains(rule), "{text}: {message}");
        }
    }

    #[test]
    fn no_refusal_shows_a_password() {
        for text in [
            "redis://u:hunter2@h:x",
            "redis://u:hun/ter2@h",
            "redis://u:hunter2@",
            "u:hunter2@h",
            "http://u:hunter2@h",
            "redis://h?password=hunter2",
            "redis://u:hunter2@h?id=a@b&id=c",
            "redis://u:12/ter2@h",
            "redis://u:hun?ter2@h",
            "redis://u:a@hunter2@h:x",
            "redis://hunter2@h",
        ] {
            let message = refusal(text);
            assert!(!message.contains("ter2"), "{message}");
        }
        let debug = format!("{:?}", parsed("redis://ann:hunter2@h"));
        assert!(
            debug.contains("ann") && !debug.contains("hunter2"),
            "{debug}"
        );
    }

    #[test]
    fn one_server_is_recognised_in_other_clothes() {
        let address = |text: &str| parsed(text).address;
        assert!(address("redis://H").same_server(&address("rediss://h:6379/3?id=x")));
        assert!(!address("redis://h").same_server(&address("redis://h:6380")));
    }
}
