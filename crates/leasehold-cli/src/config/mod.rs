//! Which store to use: from the options, the environment and the configuration file.

mod exposure;
pub(crate) mod file;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::options::store_args::StoreArgs;
use crate::output::Output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::message::Message;
use crate::store::address_text::has_password;
#[cfg(feature = "redis")]
use crate::store::address_text::with_password;
use crate::store::addresses::{self, Addresses, Choice};

const STORE: &str = "LEASEHOLD_STORE";
const PASSWORD: &str = "LEASEHOLD_PASSWORD";

/// The value of `LEASEHOLD_STORE` in place of an address, for a command that must not know the password. It is no
/// address, so a program that needs the store fails and does not use another one.
const WITHHELD: &str = "withheld";

/// The variables about the store. Read once, so that the rules can be tested.
#[derive(Debug, Default)]
struct Environment {
    store: Option<OsString>,
    password: Option<OsString>,
    require_store: Option<OsString>,
    config: Option<OsString>,
    config_home: Option<OsString>,
    home: Option<OsString>,
}

impl Environment {
    fn read() -> Self {
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

    /// The password for an address that has none.
    fn password(&self) -> Result<Option<&str>, Failure> {
        let Some(password) = self.password.as_deref().filter(|it| !it.is_empty()) else {
            return Ok(None);
        };
        let password = password.to_str();
        password
            .ok_or_else(|| Failure::usage(format!("{PASSWORD} is not valid UTF-8")))
            .map(Some)
    }

    /// Whether it contains a password of the store.
    fn has_password(&self) -> bool {
        let store = self.store.as_ref().map(|list| list.to_string_lossy());
        let in_store = store.is_some_and(|list| {
            let urls = addresses::split(&list);
            urls.iter().any(|url| has_password(url))
        });
        in_store || self.password.is_some()
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

/// Finds the store, and prints a warning for each password or key that other users can see.
pub(crate) fn choose_store(args: &StoreArgs, output: &Output) -> Result<Choice, Failure> {
    let environment = Environment::read();
    let mut choice = choose(args, &environment)?;
    if let Choice::Stores(addresses) = &mut choice {
        for (file, secret) in addresses.secret_files() {
            addresses.warnings.extend(exposure::warning(&file, secret));
        }
        for warning in &addresses.warnings {
            output.print_message(&Message::Warning(warning));
        }
        if let Some(password) = environment.password()? {
            addresses.default_password(password);
        }
    }
    Ok(choice)
}

/// Returns an address from the arguments with the password of `LEASEHOLD_PASSWORD`, unless it has one.
#[cfg(feature = "redis")]
pub(crate) fn with_default_password(url: &str) -> Result<String, Failure> {
    let environment = Environment::read();
    let password = environment.password()?;
    Ok(password.map_or_else(|| url.to_owned(), |password| with_password(url, password)))
}

/// Keeps the password of the store from `command`, if the environment contains it.
pub(crate) fn withhold_password(command: &mut Command) {
    if Environment::read().has_password() {
        command.env_remove(PASSWORD).env(STORE, WITHHELD);
    }
}

/// Finds the store: the option, the variable, the configuration file, and then the default.
fn choose(args: &StoreArgs, environment: &Environment) -> Result<Choice, Failure> {
    if args.local {
        return Ok(Choice::Local);
    }
    if let Some(list) = &args.store {
        let mut addresses = split(list, "--store")?;
        if addresses.has_password() {
            let text = "--store contains a password, which every user of this machine can see in the list of processes; \
                        use password_file=FILE in the URL, LEASEHOLD_PASSWORD, or leasehold.toml";
            addresses.warnings.push(text.into());
        }
        return Ok(Choice::Stores(addresses));
    }
    // A script that sets it from another variable may leave it empty.
    if let Some(list) = environment.store.as_ref().filter(|it| !it.is_empty()) {
        let Some(list) = list.to_str() else {
            return Err(Failure::usage(format!("{STORE} is not valid UTF-8")));
        };
        if list == WITHHELD {
            return Err(Failure::usage(
                "LEASEHOLD_STORE is withheld: this is the command of a `leasehold run`, `elect` or `once` that has the \
                 store's password in its environment, and does not pass it on; put the password into a file, which the \
                 URL names by password_file=FILE, or give the outer command --pass-store",
            ));
        }
        return split(list, STORE).map(Choice::Stores);
    }
    if environment.config.as_ref().is_some_and(|it| it.is_empty()) {
        let text = "LEASEHOLD_CONFIG is empty; name a file, or unset it";
        return Err(Failure::usage(text));
    }
    let required = environment.require_store.as_ref();
    let required = required.is_some_and(|value| value != "0" && !value.is_empty());
    let mut required = required.then(|| "LEASEHOLD_REQUIRE_STORE is set".to_owned());
    for file in environment.files() {
        match read_limited(&file) {
            Ok(text) => match file::parse(&text, &file)? {
                Some(mut addresses) => {
                    if addresses.has_password() {
                        addresses
                            .warnings
                            .extend(exposure::warning(&file, "a password"));
                    }
                    return Ok(Choice::Stores(addresses));
                }
                // A file names a store or requires one. So where there is a file for the whole system, no
                // environment leads to a local lock.
                None => required = Some(format!("{} has require_store", file.display())),
            },
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && environment.config.is_none() => {}
            Err(error) => {
                let named = environment.config.as_ref();
                let by = named.map_or("", |_| ", which LEASEHOLD_CONFIG names");
                let text = format!("cannot read {}{by}: {error}", file.display());
                return Err(Failure::new(ExitCode::IO, text));
            }
        }
    }
    match required {
        Some(by) => Err(Failure::usage(format!(
            "no store configured, but {by}; give --store, LEASEHOLD_STORE or a leasehold.toml with a store, or \
             pass --local"
        ))),
        None => Ok(Choice::Unsaid),
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

fn split(list: &str, source: &str) -> Result<Addresses, Failure> {
    Addresses::new(addresses::split(list), source.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(choice: Choice) -> Vec<String> {
        match choice {
            Choice::Stores(addresses) => addresses.urls,
            choice => panic!("{choice:?}"),
        }
    }

    #[test]
    fn option_beats_variable_and_local_beats_both() {
        let environment = Environment {
            store: Some("redis://variable".into()),
            ..Environment::default()
        };
        let mut args = StoreArgs::default();
        let said = urls(choose(&args, &environment).unwrap());
        assert_eq!(said, ["redis://variable"]);
        args.store = Some("redis://a, redis://b".into());
        let said = urls(choose(&args, &environment).unwrap());
        assert_eq!(said, ["redis://a", "redis://b"]);
        args.store = None;
        args.local = true;
        assert_eq!(choose(&args, &environment).unwrap(), Choice::Local);
    }

    /// A script may set it from another variable, which is not set.
    #[test]
    fn empty_variable_counts_as_not_set() {
        let environment = Environment {
            store: Some(OsString::new()),
            ..Environment::default()
        };
        let choice = choose(&StoreArgs::default(), &environment).unwrap();
        assert_eq!(choice, Choice::Unsaid);
    }

    #[test]
    fn withheld_store_is_an_error_and_never_another_store() {
        let environment = Environment {
            store: Some(WITHHELD.into()),
            ..Environment::default()
        };
        let refused = choose(&StoreArgs::default(), &environment).unwrap_err();
        assert_eq!(refused.code, ExitCode::USAGE);
        assert!(refused.to_string().contains("--pass-store"), "{refused}");
        let args = StoreArgs {
            store: Some("redis://a".into()),
            local: false,
        };
        assert_eq!(urls(choose(&args, &environment).unwrap()), ["redis://a"]);
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
