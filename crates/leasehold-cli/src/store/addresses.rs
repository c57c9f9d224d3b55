use std::fmt;
use std::path::PathBuf;

use leasehold_stores::config::{has_password, parameters};
use percent_encoding::percent_decode_str;

use crate::options::defaults::Defaults;
use crate::output::failure::Failure;

#[cfg(any(test, fuzzing))]
pub(crate) use leasehold_stores::config::parse_file;
/// The rules that the library shares.
pub(crate) use leasehold_stores::config::{
    Configuration, Configured, Environment, PASSWORD, STORE, Setting, WITHHELD, with_password,
};
pub(crate) use leasehold_stores::split;

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

impl Choice {
    /// The defaults for locks of this store.
    pub(crate) fn defaults(&self) -> Defaults {
        match self {
            Self::Stores(addresses) => addresses.defaults,
            Self::Local | Self::Unsaid => Defaults::default(),
        }
    }
}

/// The addresses of a store.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) urls: Vec<String>,
    /// Their source, for error messages.
    pub(crate) source: String,
    /// The defaults for locks of this store.
    pub(crate) defaults: Defaults,
    /// The password for a server whose address has none.
    pub(crate) password: Option<String>,
    /// What shows a password to the other users of this machine.
    pub(crate) warnings: Vec<String>,
}

impl Addresses {
    /// Returns the addresses, with these defaults for locks.
    pub(crate) fn new(configured: Configured, defaults: Defaults) -> Self {
        Self {
            urls: configured.addresses,
            source: configured.source,
            defaults,
            password: None,
            warnings: Vec::new(),
        }
    }

    /// Adds the source of the addresses to a failure.
    pub(crate) fn blame<T>(&self, outcome: Result<T, impl Into<Failure>>) -> Result<T, Failure> {
        outcome.map_err(|failure| {
            let failure = failure.into();
            Failure::new(failure.code, format!("{}: {failure}", self.source))
        })
    }

    /// Whether an address contains a password.
    pub(crate) fn has_password(&self) -> bool {
        self.urls.iter().any(|url| has_password(url))
    }

    /// Sets the password, and adds it to each address that has none.
    pub(crate) fn default_password(&mut self, password: &str) {
        for url in &mut self.urls {
            *url = with_password(url, password);
        }
        self.password = Some(password.to_owned());
    }

    /// Returns the files with a secret that the addresses name, and what each contains.
    pub(crate) fn secret_files(&self) -> Vec<(PathBuf, &'static str)> {
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

impl fmt::Debug for Addresses {
    /// Shows no address: it may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Addresses")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(urls: Vec<String>) -> Addresses {
        let configured = Configured::new(urls, "--store".into()).unwrap();
        Addresses::new(configured, Defaults::default())
    }

    #[test]
    fn debug_text_has_no_password() {
        let urls = vec!["redis://:secret@a".to_owned(), "postgres://a".to_owned()];
        let mut addresses = addresses(urls);
        addresses.default_password("hidden");
        let text = format!("{:?}", Choice::Stores(addresses));
        assert!(text.contains("--store"), "{text}");
        assert!(
            !text.contains("secret") && !text.contains("hidden"),
            "{text}"
        );
    }

    #[test]
    fn files_with_secrets_are_found_once() {
        let urls = [
            "rediss://a?ca=/ca&key=/k%20y&password_file=/p",
            "rediss://b?password_file=/p",
        ];
        let addresses = addresses(urls.map(String::from).into());
        let expected = [
            ("/k y".into(), "a private key"),
            ("/p".into(), "a password"),
        ];
        assert_eq!(addresses.secret_files(), expected);
    }
}
