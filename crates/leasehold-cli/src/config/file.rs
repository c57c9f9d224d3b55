use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use crate::output::failure::Failure;
use crate::store::addresses::Addresses;

/// The largest size of a configuration file.
pub(super) const BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    store: Option<Spanned<OneOrMany>>,
    #[serde(default)]
    require_store: bool,
    #[serde(default)]
    no_command: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected an address or a list of addresses")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Reads the configuration file at `path`, which holds `text`. Returns `None` if it only requires a store.
pub(crate) fn parse(text: &str, path: &Path) -> Result<Option<Addresses>, Failure> {
    // The file may contain passwords, so the error has the line number without the line.
    let place = |start: usize| {
        let line = text[..start].matches('\n').count() + 1;
        format!("{}: line {line}", path.display())
    };
    let refuse = |start, what: String| Failure::usage(format!("{}: {what}", place(start)));
    let file: ConfigFile = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        refuse(start, error.message().to_owned())
    })?;
    let Some(store) = file.store else {
        if !file.require_store {
            return Err(refuse(0, "missing field `store`".into()));
        }
        return match file.no_command {
            true => {
                let rule = "no_command applies to the `store` of the same file";
                Err(refuse(0, rule.into()))
            }
            false => Ok(None),
        };
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
    let mut addresses = Addresses::new(urls, place(start))?;
    addresses.no_command = file.no_command;
    Ok(Some(addresses))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::exit_code::ExitCode;

    fn read(text: &str) -> Result<Addresses, Failure> {
        read_any(text).map(|addresses| addresses.expect("a store"))
    }

    fn read_any(text: &str) -> Result<Option<Addresses>, Failure> {
        parse(text, Path::new("/etc/leasehold/leasehold.toml"))
    }

    fn refusal(outcome: Result<Addresses, Failure>) -> String {
        let failure = outcome.unwrap_err();
        assert_eq!(failure.code, ExitCode::USAGE);
        failure.to_string()
    }

    #[test]
    fn a_file_names_one_store_or_many() {
        assert_eq!(read("store = 'redis://a'").unwrap().urls, ["redis://a"]);
        let text = "store = ['redis://a', 'redis://b']";
        assert_eq!(read(text).unwrap().urls.len(), 2);
    }

    #[test]
    fn file_without_a_store_must_require_one() {
        assert_eq!(read_any("require_store = true").unwrap(), None);
        let both = "require_store = true\nstore = 'redis://a'";
        assert_eq!(read(both).unwrap().urls, ["redis://a"]);
        for text in ["", "require_store = false"] {
            assert!(refusal(read(text)).contains("missing field `store`"));
        }
        let hiding = refusal(read("require_store = true\nno_command = true"));
        assert!(hiding.contains("no_command applies to the"), "{hiding}");
    }

    #[test]
    fn the_example_of_the_documentation_is_a_file() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let page = std::fs::read_to_string(page).unwrap();
        let example = page.split("```toml\n").nth(1).unwrap();
        let example = example.split("```").next().unwrap();
        assert_eq!(read(example).unwrap().urls.len(), 3);
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
