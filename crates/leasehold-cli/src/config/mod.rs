//! Which store to use: from the options, the environment and the configuration file.

mod addresses;
mod exposure;
pub(crate) mod file;

pub(crate) use addresses::{Addresses, Choice};

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::options::store_args::StoreArgs;
use crate::output::Output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::message::Message;
use crate::store::address;

/// The variables about the store. Read once, so that the rules can be tested.
#[derive(Debug, Default)]
struct Environment {
    store: Option<OsString>,
    require_store: Option<OsString>,
    config: Option<OsString>,
    config_home: Option<OsString>,
    home: Option<OsString>,
}

impl Environment {
    fn read() -> Self {
        let variable = |name| std::env::var_os(name);
        Self {
            store: variable("LEASEHOLD_STORE"),
            require_store: variable("LEASEHOLD_REQUIRE_STORE"),
            config: variable("LEASEHOLD_CONFIG"),
            config_home: variable("XDG_CONFIG_HOME"),
            home: variable("HOME"),
        }
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

/// Finds the store, and prints a warning if its file shows a password to other users.
pub(crate) fn choose_store(args: &StoreArgs, output: &Output) -> Result<Choice, Failure> {
    let choice = choose(args, &Environment::read())?;
    if let Choice::Stores(Addresses {
        warning: Some(warning),
        ..
    }) = &choice
    {
        output.print_message(&Message::Warning(warning));
    }
    Ok(choice)
}

/// Finds the store: the option, the variable, the configuration file, and then the default.
fn choose(args: &StoreArgs, environment: &Environment) -> Result<Choice, Failure> {
    if args.local {
        return Ok(Choice::Local);
    }
    if let Some(list) = &args.store {
        return split(list, "--store").map(Choice::Stores);
    }
    if let Some(list) = &environment.store {
        let Some(list) = list.to_str() else {
            return Err(Failure::usage("LEASEHOLD_STORE is not valid UTF-8"));
        };
        return split(list, "LEASEHOLD_STORE").map(Choice::Stores);
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
                        addresses.warning = exposure::warning(&file);
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
    Addresses::new(address::split(list), source.into())
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
