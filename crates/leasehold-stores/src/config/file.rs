use std::path::Path;

use leasehold::Error;
use serde::Deserialize;
use toml::Spanned;

use super::configured::{Configured, Setting, Settings};
use super::invalid;

/// The largest size of a configuration file.
pub(super) const BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    store: Option<Spanned<OneOrMany>>,
    #[serde(default)]
    require_store: bool,
    show_command: Option<Spanned<String>>,
    ttl: Option<Spanned<String>>,
    wait: Option<Spanned<String>>,
    #[serde(default)]
    record_end: bool,
}

impl ConfigFile {
    /// A key that is of no use without a store.
    fn needs_store(&self) -> Option<&'static str> {
        let keys = [
            ("show_command", self.show_command.is_some()),
            ("ttl", self.ttl.is_some()),
            ("wait", self.wait.is_some()),
            ("record_end", self.record_end),
        ];
        let key = keys.into_iter().find(|(_, is_given)| *is_given);
        key.map(|(key, _)| key)
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected an address or a list of addresses")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Reads the configuration file at `path`, which holds `text`. Returns `None` if it only requires a store.
///
/// # Errors
///
/// The rule that the file breaks, with its line.
pub fn parse_file(text: &str, path: &Path) -> Result<Option<Configured>, Error> {
    // The file may contain passwords, so the error has the line number without the line.
    let place = |start: usize| {
        let line = text[..start].matches('\n').count() + 1;
        format!("{}: line {line}", path.display())
    };
    let refuse = |start, what: String| invalid(format!("{}: {what}", place(start)));
    let file: ConfigFile = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        refuse(start, error.message().to_owned())
    })?;
    let Some(store) = file.store else {
        if !file.require_store {
            return Err(refuse(0, "missing field `store`".into()));
        }
        return match file.needs_store() {
            Some(key) => {
                let rule = format!("{key} applies to the `store` of the same file");
                Err(refuse(0, rule))
            }
            None => Ok(None),
        };
    };
    let setting = |value: Option<Spanned<String>>| {
        value.map(|value| Setting {
            place: place(value.span().start),
            text: value.into_inner(),
        })
    };
    let settings = Settings {
        ttl: setting(file.ttl),
        wait: setting(file.wait),
        show_command: setting(file.show_command),
        record_end: file.record_end,
    };
    let start = store.span().start;
    let urls = match store.into_inner() {
        OneOrMany::One(url) if url.matches("://").count() > 1 => {
            let rule = "`store` is a single text with several addresses; write a list such as \
                        [\"redis://a\", \"redis://b\", \"redis://c\"]";
            return Err(refuse(start, rule.into()));
        }
        OneOrMany::One(url) => vec![url],
        OneOrMany::Many(urls) => urls,
    };
    Ok(Some(Configured {
        file: Some(path.to_owned()),
        settings,
        ..Configured::new(urls, place(start))?
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::ErrorKind;

    fn read(text: &str) -> Result<Configured, Error> {
        read_any(text).map(|configured| configured.expect("a store"))
    }

    fn read_any(text: &str) -> Result<Option<Configured>, Error> {
        parse_file(text, Path::new("/etc/leasehold/leasehold.toml"))
    }

    fn refusal(outcome: Result<Configured, Error>) -> String {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.to_string()
    }

    #[test]
    fn a_file_names_one_store_or_many() {
        assert_eq!(
            read("store = 'redis://a'").unwrap().addresses,
            ["redis://a"]
        );
        let text = "store = ['redis://a', 'redis://b']";
        assert_eq!(read(text).unwrap().addresses.len(), 2);
    }

    #[test]
    fn file_without_a_store_must_require_one() {
        assert!(read_any("require_store = true").unwrap().is_none());
        let both = "require_store = true\nstore = 'redis://a'";
        assert_eq!(read(both).unwrap().addresses, ["redis://a"]);
        for text in ["", "require_store = false"] {
            assert!(refusal(read(text)).contains("missing field `store`"));
        }
        for key in [
            "show_command = 'line'",
            "ttl = '5s'",
            "wait = '5s'",
            "record_end = true",
        ] {
            let text = refusal(read(&format!("require_store = true\n{key}")));
            let name = key.split(' ').next().unwrap();
            let rule = format!("{name} applies to the `store`");
            assert!(text.contains(&rule), "{text}");
        }
    }

    #[test]
    fn settings_of_locks_have_their_line() {
        let settings = read("store = 'redis://a'\nttl = '1m'").unwrap().settings;
        let ttl = settings.ttl.unwrap();
        assert_eq!((&*ttl.text, settings.wait.is_some()), ("1m", false));
        assert_eq!(ttl.place, "/etc/leasehold/leasehold.toml: line 2");
    }

    #[test]
    fn the_example_of_the_documentation_is_a_file() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let page = std::fs::read_to_string(page).unwrap();
        let example = page.split("```toml\n").nth(1).unwrap();
        let example = example.split("```").next().unwrap();
        assert_eq!(read(example).unwrap().addresses.len(), 3);
    }

    #[test]
    fn the_documentation_names_every_field() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let page = std::fs::read_to_string(page).unwrap();
        let text = refusal(read("nonsense = 1"));
        let (_, fields) = text.split_once("expected ").unwrap();
        let fields: Vec<&str> = fields.split('`').skip(1).step_by(2).collect();
        assert!(fields.contains(&"store"), "{text}");
        for field in fields {
            assert!(page.contains(&format!("\n{field} = ")), "{field}");
        }
    }

    #[test]
    fn error_names_the_line_but_never_quotes_it() {
        let text = refusal(read("store = 'redis://a'\nstores = 'redis://:secret@b'\n"));
        assert!(
            text.contains("leasehold.toml: line 2: unknown field `stores`"),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
        let text = refusal(read("store = 7"));
        assert!(
            text.contains("line 1: expected an address or a list"),
            "{text}"
        );
        assert!(refusal(read("store = []")).contains("names no store"));
        let text = refusal(read("store = 'redis://a'\nmax_ttl = '5s'"));
        assert!(text.contains("line 2: unknown field `max_ttl`"), "{text}");
        let text = refusal(read("store = 'redis://:secret@a,redis://b'"));
        assert!(text.contains("line 1: `store` is a single text"), "{text}");
        assert!(!text.contains("secret"), "{text}");
        assert!(refusal(read("")).contains("missing field `store`"));
    }
}
