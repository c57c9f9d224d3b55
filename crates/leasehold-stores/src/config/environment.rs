use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use leasehold::{Error, ErrorKind};

use super::address_text::has_password;
use super::configured::Configured;
use super::{file, invalid};
use crate::split;

/// The variable with the addresses of the store.
pub const STORE: &str = "LEASEHOLD_STORE";

/// The variable with the password for addresses that have none.
pub const PASSWORD: &str = "LEASEHOLD_PASSWORD";

/// The value of `LEASEHOLD_STORE` in place of an address, for a command that must not know the password. It is no
/// address, so a program that needs the store fails and does not use another one.
pub const WITHHELD: &str = "withheld";

/// The variables about the store. Read once, so that the rules can be tested.
#[derive(Default)]
#[expect(missing_debug_implementations, reason = "it contains passwords")]
pub struct Environment {
    store: Option<OsString>,
    password: Option<OsString>,
    require_store: Option<OsString>,
    config: Option<OsString>,
    config_home: Option<OsString>,
    home: Option<OsString>,
}

/// What the environment and the configuration file say about the store.
#[derive(Debug)]
pub enum Configuration {
    /// They name it.
    Store(Configured),
    /// They name none, and this one requires one.
    Required(String),
    /// They say nothing.
    Absent,
}

impl Environment {
    /// Reads the variables of the process.
    #[expect(
        clippy::disallowed_methods,
        reason = "`from_env` and the command line find the store in this one place"
    )]
    pub fn read() -> Self {
        let variable = |name| std::env::var_os(name);
        Self {
            store: variable(STORE),
            password: variable(PASSWORD),
            require_store: variable("LEASEHOLD_REQUIRE_STORE"),
            config: variable("LEASEHOLD_CONFIG"),
            config_home: variable("XDG_CONFIG_HOME"),
            home: variable("HOME"),
        }
    }

    /// Returns the password for an address that has none.
    ///
    /// # Errors
    ///
    /// If it is not valid UTF-8.
    pub fn password(&self) -> Result<Option<&str>, Error> {
        let Some(password) = self.password.as_deref().filter(|it| !it.is_empty()) else {
            return Ok(None);
        };
        let password = password.to_str();
        password
            .ok_or_else(|| invalid(format!("{PASSWORD} is not valid UTF-8")))
            .map(Some)
    }

    /// Returns whether it contains a password of the store.
    pub fn has_password(&self) -> bool {
        let store = self.store.as_ref().map(|list| list.to_string_lossy());
        let in_store = store.is_some_and(|list| split(&list).iter().any(|url| has_password(url)));
        in_store || self.password.is_some()
    }

    /// Finds the store: the variable, and then the configuration file.
    ///
    /// # Errors
    ///
    /// A variable or a file that breaks a rule; [`ErrorKind::Io`] for a file that cannot be read.
    pub fn configuration(&self) -> Result<Configuration, Error> {
        // A script that sets it from another variable may leave it empty.
        if let Some(list) = self.store.as_ref().filter(|it| !it.is_empty()) {
            let Some(list) = list.to_str() else {
                return Err(invalid(format!("{STORE} is not valid UTF-8")));
            };
            if list == WITHHELD {
                return Err(invalid(
                    "LEASEHOLD_STORE is withheld: this is the command of a `leasehold run`, `elect` or `once` that has the \
                     store's password in its environment, and does not pass it on; put the password into a file, which the \
                     URL names by password_file=FILE, or give the outer command --pass-store",
                ));
            }
            return Configured::new(split(list), STORE.into()).map(Configuration::Store);
        }
        if self.config.as_ref().is_some_and(|it| it.is_empty()) {
            return Err(invalid(
                "LEASEHOLD_CONFIG is empty; name a file, or unset it",
            ));
        }
        let required = self.require_store.as_ref();
        let required = required.is_some_and(|value| value != "0" && !value.is_empty());
        let mut required = required.then(|| "LEASEHOLD_REQUIRE_STORE is set".to_owned());
        for file in self.files() {
            match read_limited(&file) {
                Ok(text) => match file::parse_file(&text, &file)? {
                    Some(configured) => return Ok(Configuration::Store(configured)),
                    // A file names a store or requires one. So where there is a file for the whole system, no
                    // environment leads to a local lock.
                    None => required = Some(format!("{} has require_store", file.display())),
                },
                Err(error) if error.kind() == io::ErrorKind::NotFound && self.config.is_none() => {}
                Err(error) => {
                    let named = self.config.as_ref();
                    let by = named.map_or("", |_| ", which LEASEHOLD_CONFIG names");
                    let text = format!("cannot read {}{by}: {error}", file.display());
                    return Err(Error::new(ErrorKind::Io, text));
                }
            }
        }
        Ok(required.map_or(Configuration::Absent, Configuration::Required))
    }

    /// The possible configuration files; the first that exists is used. The current folder is not among
    /// them, because it may belong to another user.
    fn files(&self) -> Vec<PathBuf> {
        if let Some(config) = &self.config {
            return vec![config.into()];
        }
        let absolute = |folder: &OsString| {
            let folder = PathBuf::from(folder);
            folder.is_absolute().then_some(folder)
        };
        let user = self.config_home.as_ref().and_then(absolute).or_else(|| {
            let home = self.home.as_ref().and_then(absolute)?;
            Some(home.join(".config"))
        });
        let folders = user.into_iter().chain([PathBuf::from("/etc")]);
        folders
            .map(|folder| folder.join("leasehold").join("leasehold.toml"))
            .collect()
    }
}

/// Reads a configuration file, which may be a pipe. An endless one is an error.
fn read_limited(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    let limit = file::BYTES_MAX + 1;
    fs::File::open(file)?
        .take(limit)
        .read_to_string(&mut text)?;
    if text.len() as u64 == limit {
        let rule = format!("it has more than {} bytes", file::BYTES_MAX);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, rule));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_store(store: &str) -> Environment {
        Environment {
            store: Some(store.into()),
            ..Environment::default()
        }
    }

    /// An environment in which only this file can name a store.
    fn with_file(file: &Path) -> Environment {
        Environment {
            config: Some(file.into()),
            ..Environment::default()
        }
    }

    fn addresses(environment: &Environment) -> Vec<String> {
        match environment.configuration() {
            Ok(Configuration::Store(configured)) => configured.addresses,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn variable_comes_before_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("leasehold.toml");
        fs::write(&file, "store = 'redis://file'").unwrap();
        let mut environment = with_file(&file);
        assert_eq!(addresses(&environment), ["redis://file"]);
        // A script may set it from another variable, which is not set.
        environment.store = Some(OsString::new());
        assert_eq!(addresses(&environment), ["redis://file"]);
        environment.store = Some("redis://a, redis://b".into());
        assert_eq!(addresses(&environment), ["redis://a", "redis://b"]);
    }

    #[test]
    fn file_that_is_named_must_be_readable() {
        let folder = tempfile::tempdir().unwrap();
        let error = with_file(&folder.path().join("none")).configuration();
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(
            error.to_string().contains("LEASEHOLD_CONFIG names"),
            "{error}"
        );
        let error = with_file(Path::new("")).configuration().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }

    #[test]
    fn file_may_require_a_store_without_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("leasehold.toml");
        fs::write(&file, "require_store = true").unwrap();
        match with_file(&file).configuration().unwrap() {
            Configuration::Required(by) => assert!(by.ends_with("has require_store"), "{by}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn withheld_store_is_an_error_and_never_another_store() {
        let error = with_store(WITHHELD).configuration().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("--pass-store"), "{error}");
    }

    #[test]
    fn passwords_in_the_environment_are_found() {
        let environment = |store: Option<&str>, password: Option<&str>| Environment {
            store: store.map(Into::into),
            password: password.map(Into::into),
            ..Environment::default()
        };
        for (store, password, has) in [
            (Some("redis://a,redis://:pw@b"), None, true),
            (Some("redis://a"), Some("pw"), true),
            (None, Some("pw"), true),
            (Some("redis://a?password_file=/p"), None, false),
            (Some(WITHHELD), None, false),
            (None, None, false),
        ] {
            assert_eq!(
                environment(store, password).has_password(),
                has,
                "{store:?}"
            );
        }
    }

    #[test]
    fn user_file_comes_before_system_file() {
        let environment = |config_home: Option<&str>, home: Option<&str>| Environment {
            config_home: config_home.map(Into::into),
            home: home.map(Into::into),
            ..Environment::default()
        };
        let system = PathBuf::from("/etc/leasehold/leasehold.toml");
        let user = PathBuf::from("/home/u/.config/leasehold/leasehold.toml");
        assert_eq!(
            environment(None, None).files(),
            std::slice::from_ref(&system)
        );
        let files = environment(None, Some("/home/u")).files();
        assert_eq!(files, [user, system.clone()]);
        // A relative path would mean the current folder.
        assert_eq!(environment(Some("."), Some("x")).files(), [system]);
    }
}
