use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::args::StoreArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;

/// Which store was asked for, and where that was said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// These addresses.
    Stores(Addresses),
    /// The files of this machine and user, and the caller said so.
    Local,
    /// The files of this machine and user, since nobody said anything.
    Unsaid,
}

/// The addresses of the members of a store, and what belongs to them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) urls: Vec<String>,
    pub(crate) clock_tolerance: Option<Duration>,
    /// Where they were said, for error messages.
    pub(crate) source: String,
}

/// What the environment says about the store. Read once, so that the rules can be tested.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    store: Option<OsString>,
    require_store: Option<OsString>,
    config: Option<OsString>,
    config_home: Option<OsString>,
    home: Option<OsString>,
}

impl Environment {
    pub(crate) fn read() -> Self {
        let variable = |name| std::env::var_os(name);
        Self {
            store: variable("LEASEHOLD_STORE"),
            require_store: variable("LEASEHOLD_REQUIRE_STORE"),
            config: variable("LEASEHOLD_CONFIG"),
            config_home: variable("XDG_CONFIG_HOME"),
            home: variable("HOME"),
        }
    }

    /// The files that may hold the configuration; the first that exists counts. Never one in the
    /// current folder, which may belong to somebody else.
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

/// Finds the store: the option, the variable, the configuration file, and then the default.
pub(crate) fn choose(args: &StoreArgs, environment: &Environment) -> Result<Choice, Failure> {
    if args.local {
        return Ok(Choice::Local);
    }
    if let Some(list) = &args.store {
        return split(list, "--store").map(Choice::Stores);
    }
    if let Some(list) = &environment.store {
        let Some(list) = list.to_str() else {
            return Err(Failure::usage("LEASEHOLD_STORE is not UTF-8"));
        };
        return split(list, "LEASEHOLD_STORE").map(Choice::Stores);
    }
    for file in environment.files() {
        match fs::read_to_string(&file) {
            Ok(text) => return parse_file(&text, &file),
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && environment.config.is_none() => {}
            Err(error) => {
                let text = format!("cannot read {}: {error}", file.display());
                return Err(Failure::new(ExitCode::IO, text));
            }
        }
    }
    let required = environment.require_store.as_ref();
    if required.is_some_and(|value| value != "0" && !value.is_empty()) {
        return Err(Failure::usage(
            "no store is configured, but LEASEHOLD_REQUIRE_STORE asks for one: \
             give --store, LEASEHOLD_STORE or a leasehold.toml, or say --local",
        ));
    }
    Ok(Choice::Unsaid)
}

fn split(list: &str, source: &str) -> Result<Addresses, Failure> {
    let urls: Vec<String> = list.split(',').map(|url| url.trim().into()).collect();
    addresses(urls, None, source.into())
}

fn addresses(
    urls: Vec<String>,
    clock_tolerance: Option<Duration>,
    source: String,
) -> Result<Addresses, Failure> {
    if urls.iter().all(String::is_empty) {
        return Err(Failure::usage(format!("{source} names no store")));
    }
    if urls.iter().any(String::is_empty) {
        return Err(Failure::usage(format!("{source} has an empty address")));
    }
    Ok(Addresses {
        urls,
        clock_tolerance,
        source,
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    store: OneOrMany,
    clock_tolerance: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected an address or a list of addresses")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

fn parse_file(text: &str, path: &Path) -> Result<Choice, Failure> {
    let source = path.display().to_string();
    let refuse = |what: String| Failure::usage(format!("{source}: {what}"));
    // The file may hold passwords: say where it is wrong without quoting the line.
    let file: ConfigFile = toml::from_str(text).map_err(|error| {
        let before = error.span().map_or("", |span| &text[..span.start]);
        let line = before.matches('\n').count() + 1;
        refuse(format!("line {line}: {}", error.message()))
    })?;
    let clock_tolerance = match &file.clock_tolerance {
        None => None,
        Some(span) => Some(
            humantime::parse_duration(span)
                .map_err(|error| refuse(format!("clock_tolerance {span:?}: {error}")))?,
        ),
    };
    let urls = match file.store {
        OneOrMany::One(url) => vec![url],
        OneOrMany::Many(urls) => urls,
    };
    addresses(urls, clock_tolerance, source).map(Choice::Stores)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(outcome: Result<Choice, Failure>) -> String {
        let failure = outcome.unwrap_err();
        assert_eq!(failure.code, ExitCode::USAGE);
        failure.to_string()
    }

    fn urls(choice: Choice) -> Vec<String> {
        match choice {
            Choice::Stores(addresses) => addresses.urls,
            choice => panic!("{choice:?}"),
        }
    }

    fn parse(text: &str) -> Result<Choice, Failure> {
        parse_file(text, Path::new("/etc/leasehold/leasehold.toml"))
    }

    #[test]
    fn the_option_beats_the_variable_and_local_beats_both() {
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
    fn an_empty_variable_is_a_mistake_and_not_the_default() {
        let environment = Environment {
            store: Some("".into()),
            ..Environment::default()
        };
        let text = refusal(choose(&StoreArgs::default(), &environment));
        assert_eq!(text, "LEASEHOLD_STORE names no store");
        assert!(split("redis://a,,redis://b", "--store").is_err());
    }

    #[test]
    fn a_file_names_one_store_or_many() {
        assert_eq!(urls(parse("store = 'redis://a'").unwrap()), ["redis://a"]);
        let text = "store = ['redis://a', 'redis://b']\nclock_tolerance = '100ms'\n";
        match parse(text).unwrap() {
            Choice::Stores(addresses) => {
                assert_eq!(addresses.urls.len(), 2);
                assert_eq!(addresses.clock_tolerance, Some(Duration::from_millis(100)));
            }
            choice => panic!("{choice:?}"),
        }
    }

    #[test]
    fn a_mistake_in_a_file_is_placed_but_never_quoted() {
        let text = refusal(parse("store = 'redis://a'\nstores = 'redis://:secret@b'\n"));
        assert!(
            text.contains("leasehold.toml: line 2: unknown field `stores`"),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
        let text = refusal(parse("store = 7"));
        assert!(
            text.contains("line 1: expected an address or a list"),
            "{text}"
        );
        assert!(refusal(parse("store = []")).contains("names no store"));
        let text = refusal(parse("store = 'redis://a'\nclock_tolerance = '5'"));
        assert!(text.contains(r#"clock_tolerance "5""#), "{text}");
        assert!(refusal(parse("")).contains("missing field `store`"));
    }

    #[test]
    fn files_are_looked_for_in_the_users_folder_and_then_the_systems() {
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
