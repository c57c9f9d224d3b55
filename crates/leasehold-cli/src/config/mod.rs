//! Which store to use: from the options, the environment and the configuration file.

mod exposure;

use std::process::Command;

use crate::options::defaults::Defaults;
use crate::options::show_command::ShowCommand;
use crate::options::span::{span, wait_span};
use crate::options::store_args::StoreArgs;
use crate::output::Output;
use crate::output::failure::Failure;
use crate::output::message::Message;
#[cfg(feature = "redis")]
use crate::store::addresses::with_password;
use crate::store::addresses::{
    self, Addresses, Choice, Configuration, Configured, Environment, PASSWORD, STORE, Setting,
    WITHHELD,
};

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
        let configured = Configured::new(addresses::split(list), "--store".into())?;
        let mut addresses = Addresses::new(configured, Defaults::default());
        if addresses.has_password() {
            let text = "--store contains a password, which every user of this machine can see in the list of processes; \
                        use password_file=FILE in the URL, LEASEHOLD_PASSWORD, or leasehold.toml";
            addresses.warnings.push(text.into());
        }
        return Ok(Choice::Stores(addresses));
    }
    match environment.configuration()? {
        Configuration::Store(configured) => configured_store(configured).map(Choice::Stores),
        Configuration::Required(by) => Err(Failure::usage(format!(
            "no store configured, but {by}; give --store, LEASEHOLD_STORE or a leasehold.toml with a store, or \
             pass --local"
        ))),
        Configuration::Absent => Ok(Choice::Unsaid),
    }
}

fn configured_store(configured: Configured) -> Result<Addresses, Failure> {
    let settings = configured.settings.clone();
    let defaults = Defaults {
        ttl: read_setting("ttl", settings.ttl, span)?,
        wait: read_setting("wait", settings.wait, wait_span)?,
        show_command: read_setting("show_command", settings.show_command, ShowCommand::parse)?,
        record_end: settings.record_end,
    };
    let file = configured.file.clone();
    let mut addresses = Addresses::new(configured, defaults);
    if let Some(file) = file.filter(|_| addresses.has_password()) {
        let warning = exposure::warning(&file, "a password");
        addresses.warnings.extend(warning);
    }
    Ok(addresses)
}

/// Reads a value of the configuration file.
fn read_setting<T>(
    key: &str,
    setting: Option<Setting>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Failure> {
    let read = setting.map(|setting| {
        let refuse = |rule| Failure::usage(format!("{}: `{key}`: {rule}", setting.place));
        read(&setting.text).map_err(refuse)
    });
    read.transpose()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn option_beats_all_and_local_beats_it() {
        let environment = Environment::default();
        let mut args = StoreArgs {
            store: Some("redis://a, redis://b".into()),
            local: false,
        };
        match choose(&args, &environment).unwrap() {
            Choice::Stores(addresses) => assert_eq!(addresses.urls, ["redis://a", "redis://b"]),
            choice => panic!("{choice:?}"),
        }
        args.local = true;
        assert_eq!(choose(&args, &environment).unwrap(), Choice::Local);
    }

    #[test]
    fn file_has_defaults_for_its_locks() {
        let setting = |text: &str| {
            Some(Setting {
                text: text.into(),
                place: "leasehold.toml: line 2".into(),
            })
        };
        let mut configured = Configured::new(vec!["redis://a".into()], "x".into()).unwrap();
        configured.settings.ttl = setting("1m30s");
        configured.settings.wait = setting("5");
        configured.settings.show_command = setting("line");
        let defaults = configured_store(configured.clone()).unwrap().defaults;
        assert_eq!(defaults.ttl, Some(Duration::from_secs(90)));
        assert_eq!(defaults.wait, Some(Duration::from_secs(5)));
        assert_eq!(defaults.show_command, Some(ShowCommand::Line));
        configured.settings.ttl = setting("30");
        let text = configured_store(configured).unwrap_err().to_string();
        assert!(
            text.starts_with("leasehold.toml: line 2: `ttl`: a duration needs a unit"),
            "{text}"
        );
    }
}
