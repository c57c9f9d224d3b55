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
    /// What is wrong with the file that they are from, if it still can be used.
    pub(crate) warning: Option<String>,
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
            warning: None,
        })
    }

    /// Whether an address contains a password.
    pub(super) fn has_password(&self) -> bool {
        self.urls.iter().any(|url| has_password(url))
    }
}

fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let login = authority.rsplit_once('@').map(|(login, _)| login);
    let password = login.and_then(|login| login.split_once(':'));
    password.is_some_and(|(_, password)| !password.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_part_of_the_login() {
        for url in ["redis://u:p@a", "rediss://:p@a/1?id=x", "unix://u:p@/run/a"] {
            assert!(has_password(url), "{url}");
        }
        for url in [
            "redis://a:6379",
            "redis://u:@a",
            "file:///a:b@c",
            "redis://a?id=x:y@z",
        ] {
            assert!(!has_password(url), "{url}");
        }
    }
}
