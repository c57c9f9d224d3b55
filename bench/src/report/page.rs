use std::path::PathBuf;
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::statistics::Spread;
use super::table::line;
use crate::error::{Fallible, failed};
use crate::measure::machine;
use crate::options::{Options, folder};
use crate::peers::programs::{answer, versions as peers};

/// What a section found, as Markdown. It stays in `target/bench` for the report.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Page {
    /// Date, machine, and versions.
    pub(crate) surroundings: String,
    /// Paragraphs, headings, and tables.
    parts: Vec<String>,
    /// Rows of the summary, and whether the README shows them, too.
    pub(crate) figures: Vec<(String, bool)>,
    pub(crate) failures: usize,
}

impl Page {
    pub(crate) fn new(title: &str, options: &Options) -> Self {
        Self {
            surroundings: surroundings(),
            parts: vec![
                format!("## {title}"),
                format!("```sh\n{}\n```", options.command),
            ],
            figures: Vec::new(),
            failures: 0,
        }
    }

    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.parts.push(text.into());
    }

    /// Reports that a subject is not measured.
    pub(crate) fn skip(&mut self, name: &str, why: &str) {
        eprintln!("SKIPPED: {name}: {why}");
        let text = format!("Skipped: {name}: {why}.");
        if !self.parts.contains(&text) {
            self.say(text);
        }
    }

    /// Reports that a measurement failed.
    pub(crate) fn fail(&mut self, why: &str) {
        eprintln!("FAILED: {why}");
        self.failures += 1;
        self.say(format!("FAILED: {why}"));
    }

    /// Adds a row to the summary: our value, and those of others that were measured.
    pub(crate) fn figure(
        &mut self,
        what: &str,
        is_in_readme: bool,
        shown: fn(f64) -> String,
        ours: Option<Spread>,
        others: &[(&str, Option<Spread>)],
    ) {
        let Some(ours) = ours else { return };
        let others = others.iter().filter_map(|(name, value)| {
            let value = shown(value.as_ref()?.median);
            Some(format!("{name} {value}"))
        });
        let others = others.collect::<Vec<_>>().join(", ");
        let cells = [what.to_owned(), shown(ours.median), others];
        self.figures.push((line(&cells), is_in_readme));
    }

    pub(crate) fn markdown(&self) -> String {
        let parts = self.parts.iter().map(|part| part.trim_end());
        parts.collect::<Vec<_>>().join("\n\n") + "\n"
    }

    pub(crate) fn save(&self, name: &str) -> Fallible {
        let path = path(name);
        std::fs::create_dir_all(folder()).map_err(|error| failed(&path, &error))?;
        let text = serde_json::to_string_pretty(self)?;
        Ok(std::fs::write(&path, text).map_err(|error| failed(&path, &error))?)
    }

    pub(crate) fn load(name: &str) -> Fallible<Self> {
        let path = path(name);
        let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, &error))?;
        Ok(serde_json::from_str(&text).map_err(|error| failed(&path, &error))?)
    }
}

fn path(name: &str) -> PathBuf {
    folder().join(name).with_extension("json")
}

/// `2026-01-31, on 2 cores of …: Leasehold 0.1.0 (6ec1488f), Redis server 7.0.15, …`
fn surroundings() -> String {
    let text = |program: &str, arguments: &[&str]| answer(Command::new(program).args(arguments));
    let date = text("date", &["--utc", "+%F"]).unwrap_or_default();
    let commit = ["describe", "--always", "--dirty", "--exclude=*"];
    let commit = text("git", &commit).unwrap_or_default();
    let mut versions = vec![format!(
        "Leasehold {} ({commit})",
        env!("CARGO_PKG_VERSION")
    )];
    // `Redis server v=7.0.15 sha=… malloc=jemalloc-5.2.1 …`
    let redis = text("redis-server", &["--version"]).unwrap_or_default();
    let redis = redis.split(' ').find_map(|word| word.strip_prefix("v="));
    versions.extend(redis.map(|version| format!("Redis server {version}")));
    let lock = include_str!("../../../Cargo.lock");
    let crates = ["redis", "tokio", "rslock", "tokio-postgres", "tonic"]
        .map(|name| (name, newest(lock, name)));
    versions.extend(crates.map(|(name, version)| format!("{name} (crate) {version}")));
    versions.extend(peers());
    let (machine, versions) = (machine::description(), versions.join(", "));
    format!("{date}, on {machine}: {versions}.")
}

/// Returns the last version of a package that `lock` names. That is the one we chose; an older one is
/// there only for another dependency.
fn newest<'a>(lock: &'a str, name: &str) -> &'a str {
    let named = format!("name = \"{name}\"\nversion = \"");
    let found = lock.rsplit_once(&named);
    let found = found.and_then(|(_, rest)| rest.split('"').next());
    found.unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_version_in_the_lock_file_is_ours() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"0.2\"\n\n[[package]]\nname = \"a\"\nversion = \"1.0\"\n";
        assert_eq!(newest(lock, "a"), "1.0");
        assert_eq!(newest(lock, "b"), "unknown");
    }

    #[test]
    fn figure_leaves_out_what_was_not_measured() {
        let mut page = Page::new("Title", &Options::default());
        let shown = |value| format!("{value:.0} µs");
        let of = |value| Spread::of([value]);
        page.figure("a", true, shown, of(1.2), &[("b", of(3.0)), ("c", None)]);
        page.figure("d", true, shown, None, &[("b", of(3.0))]);
        assert_eq!(page.figures, [("| a | 1 µs | b 3 µs |\n".to_owned(), true)]);
    }
}
