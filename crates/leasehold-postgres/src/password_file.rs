//! The files that have passwords.

use std::path::{Path, PathBuf};

use leasehold::store::background;
use leasehold::{Error, ErrorKind};
use leasehold_credentials::Password;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::server::Server;

/// A file with the password, which is read for each login.
#[derive(Clone, Debug)]
pub(crate) enum PasswordFile {
    /// It has the password alone.
    Password(Password),
    /// It has the form of libpq's `.pgpass`.
    Passfile(PathBuf),
}

impl PasswordFile {
    /// Checks that the file has a password for one of the servers now.
    pub(crate) fn check(&self, config: &Config, servers: &[Server]) -> Result<(), Error> {
        match self {
            Self::Password(password) => password.check(),
            Self::Passfile(file) => {
                let found = servers
                    .iter()
                    .map(|server| password_in(file, config, server));
                let found = found.reduce(Result::or);
                let rule = found.and_then(Result::err);
                rule.map_or(Ok(()), |rule| {
                    Err(Error::new(ErrorKind::InvalidInput, rule))
                })
            }
        }
    }

    /// Returns the password for a login at `server`. A later login may find another one, or the first one.
    pub(crate) async fn read(&self, config: &Config, server: &Server) -> Result<String, Error> {
        match self {
            Self::Password(password) => password.read().await,
            Self::Passfile(file) => {
                let (file, config, server) = (file.clone(), config.clone(), server.clone());
                let found = background::blocking(move || password_in(&file, &config, &server));
                let found = found.await?;
                found.map_err(|rule| Error::new(ErrorKind::Unreachable, rule))
            }
        }
    }
}

/// Returns the password for this server in a file of libpq's form: `host:port:database:user:password` in each line.
fn password_in(file: &Path, config: &Config, server: &Server) -> Result<String, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("passfile {}: {error}", file.display()))?;
    let host = match &server.host {
        Host::Tcp(name) => name.as_str(),
        #[cfg(unix)]
        Host::Unix(_) => "localhost",
    };
    let port = server.port.to_string();
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    let found = text
        .lines()
        .find_map(|line| matched(line, [host, &port, database, user]));
    found.ok_or_else(|| format!("passfile {} has no line for {server}", file.display()))
}

/// Returns the password of a line that is for this server. `\` takes the meaning from `:` and `\`.
pub(crate) fn matched(line: &str, wanted: [&str; 4]) -> Option<String> {
    let mut fields = vec![String::new()];
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => fields.last_mut()?.extend(rest.next()),
            ':' if fields.len() < 5 => fields.push(String::new()),
            c => fields.last_mut()?.push(c),
        }
    }
    let password = (fields.len() == 5).then(|| fields.pop())??;
    let is_for = |(field, wanted): (&String, &str)| field == "*" || field == wanted;
    let fields = fields.iter().zip(wanted);
    (!line.starts_with('#') && fields.into_iter().all(is_for)).then_some(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_that_of_the_first_line_that_matches() {
        let wanted = ["h", "5432", "app", "ann"];
        for (line, password) in [
            ("h:5432:app:ann:secret", Some("secret")),
            ("*:*:*:ann:a\\:b\\\\c", Some("a:b\\c")),
            ("h:5432:app:ann:a:b", Some("a:b")),
            ("h:5433:app:ann:x", None),
            ("#h:5432:app:ann:x", None),
            ("h:5432:app", None),
        ] {
            assert_eq!(matched(line, wanted).as_deref(), password, "{line}");
        }
    }
}
