use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use crate::config::address_text::{has_password, parameters, with_password};
use crate::output::failure::Failure;

/// Which store is configured, and where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// These addresses.
    Stores(Addresses),
    /// The files of this machine and user, by request.
    Local,
    /// The files of this machine and user, by default.
    Unsaid,
}

/// The addresses of a store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) urls: Vec<String>,
    /// Their source, for error messages.
    pub(crate) source: String,
    /// Whether the holders and waiters of this store hide their commands from others.
    pub(crate) no_command: bool,
    /// What shows a password to the other users of this machine.
    pub(crate) warnings: Vec<String>,
}

impl Addresses {
    pub(crate) fn new(urls: Vec<String>, source: String) -> Result<Self, Failure> {
        if urls.iter().all(String::is_empty) {
            return Err(Failure::usage(format!(
                "{source} names no store; expected a URL such as redis://host or file:///folder"
            )));
        }
        if urls.iter().any(String::is_empty) {
            return Err(Failure::usage(format!(
                "{source} contains an empty address; remove the extra comma"
            )));
        }
        Ok(Self {
            urls,
            source,
            no_command: false,
            warnings: Vec::new(),
        })
    }

    /// Adds the source of the addresses to a failure.
    pub(crate) fn blame<T>(&self, outcome: Result<T, impl Into<Failure>>) -> Result<T, Failure> {
        outcome.map_err(|failure| {
            let failure = failure.into();
            Failure::new(failure.code, format!("{}: {failure}", self.source))
        })
    }

    /// Whether an address contains a password.
    pub(super) fn has_password(&self) -> bool {
        self.urls.iter().any(|url| has_password(url))
    }

    /// Adds the password to each address that has none.
    pub(super) fn default_password(&mut self, password: &str) {
        for url in &mut self.urls {
            *url = with_password(url, password);
        }
    }

    /// Returns the files with a secret that the addresses name, and what each contains.
    pub(super) fn secret_files(&self) -> Vec<(PathBuf, &'static str)> {
        let mut files = Vec::new();
        for url in &self.urls {
            for (name, value) in parameters(url) {
                let content = match name {
                    "password_file" | "passfile" => "a password",
                    "key" | "sslkey" => "a private key",
                    _ => continue,
                };
                if let Ok(path) = percent_decode_str(value).decode_utf8() {
                    files.push((PathBuf::from(&*path), content));
                }
            }
        }
        files.sort_unstable();
        files.dedup();
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_secrets_are_found_once() {
        let urls = [
            "rediss://a?ca=/ca&key=/k%20y&password_file=/p",
            "rediss://b?password_file=/p",
        ];
        let addresses = Addresses::new(urls.map(String::from).into(), "--store".into()).unwrap();
        let expected = [
            ("/k y".into(), "a private key"),
            ("/p".into(), "a password"),
        ];
        assert_eq!(addresses.secret_files(), expected);
    }
}
