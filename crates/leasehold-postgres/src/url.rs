//! The URL of a store.

use std::fmt;
use std::time::Duration;

use leasehold::Error;
use leasehold_credentials::{ENCODED, FileParameters, TlsSource, percent_decoded};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::password_file::PasswordFile;
use crate::server::{Server, servers};

/// What a URL says.
#[derive(Clone)]
pub(crate) struct Settings {
    /// How the client connects. `Debug` of it hides the password, but it is not shown at all.
    pub(crate) config: Config,
    /// The servers. One of them accepts writes.
    pub(crate) servers: Vec<Server>,
    /// The schema with the tables.
    pub(crate) schema: String,
    /// The file with the password, if there is one.
    pub(crate) password: Option<PasswordFile>,
    /// The files for TLS; `None` without TLS.
    pub(crate) tls: Option<TlsSource>,
}

const SHAPE: &str = "postgres://[user[:password]@]host[:port][/database][?schema=leasehold&sslmode=require&ca=/file.pem]";

/// The schema, unless a URL names another one.
pub(crate) const SCHEMA: &str = "leasehold";

/// Where names without a schema are looked up: no other user can put anything there.
pub(crate) const SEARCH_PATH: &str = "pg_catalog,pg_temp";

/// What every connection sets. A statement that outlives its client must end soon, and the functions rely on a new
/// snapshot for each statement. An acknowledged grant must survive a crash of the server. No name may find what another user
/// put into a schema. Whether a session may write is the decision of the administrator, so `default_transaction_read_only` is
/// not here.
///
/// Each lookup has an index. But a queue that changes often has few rows among many dead ones, and the server may keep the
/// plan from when a scan of the whole table was cheap. The apparent cost of a scan without an index would make the server compile it.
/// No plan depends on the parameters, and to plan again can cost more than the call.
const SESSION: [(&str, &str); 9] = [
    ("search_path", SEARCH_PATH),
    ("default_transaction_isolation", "read committed"),
    ("synchronous_commit", "on"),
    ("lock_timeout", "100ms"),
    ("statement_timeout", "5s"),
    ("enable_seqscan", "off"),
    ("jit", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    // Shows that the session has all of them.
    ("leasehold_client.session", "on"),
];

impl Settings {
    /// Parses `url` and checks every part of it. Opens nothing.
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        Self::read(url).map_err(|rule| Error::invalid_url(url, &rule, SHAPE))
    }

    fn read(url: &str) -> Result<Self, String> {
        let (scheme, _) = url.split_once("://").ok_or("no scheme")?;
        if !matches!(scheme, "postgres" | "postgresql") {
            return Err("unknown scheme".into());
        }
        let (body, query) = url.split_once('?').unwrap_or((url, ""));
        let path = body.splitn(4, '/').nth(3);
        if path.is_some_and(|path| path.contains(['/', '@'])) {
            // This may be the rest of a password, and the database is shown.
            return Err(ENCODED.into());
        }
        let (mut schema, mut is_encrypted, mut passfile) = (SCHEMA.to_owned(), false, None);
        let mut files = FileParameters::default();
        // The others are those of libpq, which the driver reads.
        let mut others = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or("a parameter without a value")?;
            let value = percent_decoded(value)?;
            match ours(name) {
                "schema" => schema = checked_schema(value)?,
                "passfile" => passfile = Some(value.into()),
                "sslmode" => is_encrypted = reads_tls(&value)?,
                name if files.take(name, &value)? => {}
                _ => others.push(pair),
            }
        }
        let tls = files.tls(is_encrypted, "sslmode=require")?;
        // The driver takes the first `@` for the end of the login, although none is behind a `/`.
        let at = path.map_or("@", |_| "%40");
        let libpq = format!("{body}?{}", others.join("&").replace('@', at));
        let config: Config = libpq.parse().map_err(|error| rule_of(&error))?;
        let is_part_of_login = |host: &Host| matches!(host, Host::Tcp(name) if name.contains('@'));
        if config.get_hosts().iter().any(is_part_of_login) {
            return Err(ENCODED.into());
        }
        let password = match files.password_file(config.get_password().is_some())? {
            Some(password) => Some(PasswordFile::Password(password)),
            // As in libpq, the password of the URL comes first.
            None if config.get_password().is_some() => None,
            None => passfile.map(PasswordFile::Passfile),
        };
        Ok(Self {
            schema,
            password,
            ..Self::of_config(config, tls.map(Into::into))?
        })
    }

    /// Takes what a configuration of the driver says. Without `tls`, it does not encrypt.
    pub(crate) fn of_config(config: Config, tls: Option<TlsSource>) -> Result<Self, String> {
        let servers = servers(&config)?;
        if config.get_target_session_attrs() == TargetSessionAttrs::ReadOnly {
            return Err(
                "target_session_attrs read-only: locks need a server that accepts writes".into(),
            );
        }
        Ok(Self {
            config: completed(config, tls.is_some()),
            servers,
            schema: SCHEMA.to_owned(),
            password: None,
            tls,
        })
    }

    /// Checks the files that are named: one that cannot be used is the caller's error.
    pub(crate) fn check_files(&self) -> Result<(), Error> {
        if let Some(files) = &self.tls {
            files.check()?;
        }
        match &self.password {
            Some(file) => file.check(&self.config, &self.servers),
            None => Ok(()),
        }
    }

    /// Whether all servers are on this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.servers.iter().all(|server| match &server.host {
            Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
            #[cfg(unix)]
            Host::Unix(_) => true,
        })
    }
}

/// Servers, database and schema, without credentials.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = self.config.get_dbname().unwrap_or_default();
        let servers: Vec<String> = self.servers.iter().map(Server::to_string).collect();
        write!(f, "postgres://{}/{database}", servers.join(","))?;
        if self.schema != SCHEMA {
            write!(f, "?schema={}", self.schema)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Settings").field(&self.to_string()).finish()
    }
}

/// Sets what every connection needs.
fn completed(mut config: Config, tls: bool) -> Config {
    let given = config.get_options().unwrap_or_default();
    let wanted = SESSION.map(|(name, value)| format!(" -c {name}={}", value.replace(' ', "\\ ")));
    config.options(format!("{given}{}", wanted.concat()).trim_start());
    config.ssl_mode(if tls {
        SslMode::Require
    } else {
        SslMode::Disable
    });
    if config.get_application_name().is_none() {
        config.application_name("leasehold");
    }
    if config.get_user().is_none() {
        config.user("postgres");
    }
    if config.get_dbname().is_none() {
        let user = config.get_user().unwrap_or_default().to_owned();
        config.dbname(user);
    }
    if config.get_hosts().len() > 1 {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    // A peer that is gone is noticed, even while nothing is sent.
    config.keepalives_idle(Duration::from_secs(15));
    config.keepalives_interval(Duration::from_secs(5));
    config.keepalives_retries(3);
    config
}

/// Returns the statements that set what a pooler dropped.
pub(crate) fn settings_as_sql() -> String {
    SESSION
        .map(|(name, value)| format!("select pg_catalog.set_config('{name}', '{value}', false);"))
        .concat()
}

/// Returns our name for a parameter of libpq, where it has another one.
fn ours(name: &str) -> &str {
    match name {
        "sslrootcert" => "ca",
        "sslcert" => "cert",
        "sslkey" => "key",
        name => name,
    }
}

fn reads_tls(mode: &str) -> Result<bool, String> {
    match mode {
        "disable" => Ok(false),
        "require" | "verify-full" => Ok(true),
        other => Err(format!(
            "sslmode {other:?}: use disable, or require, which also checks the certificate and the name of the server"
        )),
    }
}

fn checked_schema(name: String) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = |c: char| c.is_ascii_lowercase() || c == '_';
    if name.starts_with(begins)
        && name.chars().all(is_plain)
        && name.len() <= 40
        && !name.starts_with("pg_")
    {
        return Ok(name);
    }
    Err(format!(
        "the schema {name:?} is not 1 to 40 of a-z, 0-9 and _, beginning with a letter"
    ))
}

/// Why the driver refuses the rest of a URL. Its errors name a parameter or a rule, and no value.
fn rule_of(error: &tokio_postgres::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use leasehold::ErrorKind;
    use leasehold_credentials::TlsFiles;

    use super::*;

    fn parsed(url: &str) -> Settings {
        Settings::parse(url).unwrap_or_else(|error| panic!("{error}"))
    }

    fn refusal(url: &str) -> String {
        let error = Settings::parse(url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.to_string()
    }

    #[test]
    fn servers_and_database_are_shown() {
        for (url, shown) in [
            ("postgres://u:pw@DB/app", "postgres://db:5432/app"),
            (
                "postgresql://u@h:7000/app?schema=locks",
                "postgres://h:7000/app?schema=locks",
            ),
            ("postgres://ann@[::1]", "postgres://[::1]:5432/ann"),
            ("postgres://u@a:1,b:2/app", "postgres://a:1,b:2/app"),
            (
                "postgres://u@%2Frun%2Fpg/app",
                "postgres:///run/pg:5432/app",
            ),
            ("postgres://h/app?user=a@b", "postgres://h:5432/app"),
            ("postgres://u:p?x=y@h/app", "postgres://h:5432/app"),
        ] {
            assert_eq!(parsed(url).to_string(), shown, "{url}");
        }
    }

    #[test]
    fn parameters_are_read() {
        let settings = parsed(
            "postgres://u:p%40%3A@h/app?sslmode=require&ca=/a%20b.pem&options=-c%20work_mem%3D1MB",
        );
        assert_eq!(settings.config.get_password(), Some(&b"p@:"[..]));
        let files = TlsFiles {
            ca: Some("/a b.pem".into()),
            identity: None,
        };
        assert_eq!(settings.tls, Some(files.into()));
        assert!(settings.tls.is_some() && !settings.is_local());
        let options = settings.config.get_options().unwrap();
        assert!(
            options.starts_with("-c work_mem=1MB -c search_path=pg_catalog,pg_temp -c "),
            "{options}"
        );
        assert_eq!(parsed("postgres://h/app").tls, None);
        let settings =
            parsed("postgres://h/app?sslmode=verify-full&sslcert=/c&sslkey=/k&password_file=/p");
        let files = TlsFiles {
            ca: None,
            identity: Some(("/c".into(), "/k".into())),
        };
        assert_eq!(settings.tls, Some(files.into()));
        assert!(matches!(settings.password, Some(PasswordFile::Password(_))));
    }

    #[test]
    fn wrong_parts_are_named() {
        for (url, rule) in [
            ("h:5432", "no scheme"),
            ("redis://h", "unknown scheme"),
            ("postgres://u@h/app?schema=A", "the schema \"A\""),
            ("postgres://u@h/app?schema=pg_x", "the schema \"pg_x\""),
            ("postgres://u@h/app?sslmode=prefer", "sslmode \"prefer\""),
            ("postgres://u:pa@se/cret@h/app", "percent-encoded"),
            ("postgres://u@h/app?ca=/x.pem", "for sslmode=require alone"),
            ("postgres://u@h/app?sslmode=require&cert=/x", "go together"),
            ("postgres://u:pw@h/app?password_file=/x", "one of them"),
            ("postgres://u@h/app?unknown=1", "unknown"),
            ("postgres://u@h:x/app", "port"),
            ("postgres://u@a,b/app?port=1,2,3", "number of ports"),
            ("postgres://u@a,b/app?hostaddr=::1", "number of addresses"),
            (
                "postgres://u@h/app?target_session_attrs=read-only",
                "accepts writes",
            ),
        ] {
            let text = refusal(url);
            assert!(text.contains(rule), "{rule}: {text}");
        }
    }

    #[test]
    fn password_is_never_shown() {
        for url in [
            "postgres://u:secret@h:x/app",
            "postgres://u:se@cret@h/app?schema=A&password=secret",
            "postgres://u:se@cret@h/app",
            "u:secret@h",
        ] {
            let text = refusal(url);
            assert!(
                !text.contains("secret") && !text.contains("cret@"),
                "{text}"
            );
        }
        let settings = parsed("postgres://u:secret@h/app");
        assert!(!format!("{settings:?} {settings}").contains("secret"));
    }
}
