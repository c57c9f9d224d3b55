use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;

use crate::statistics::Spread;
use crate::worker_process::folder;

/// Where a benchmark writes: a page, which is printed too, and a file of raw results.
#[derive(Debug)]
pub(crate) struct Report {
    page: (PathBuf, File),
    raw: (PathBuf, File),
}

impl Report {
    pub(crate) fn create(name: &str) -> Result<Self, String> {
        let folder = folder();
        std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
        let create = |extension: &str| {
            let path = folder.join(name).with_extension(extension);
            let file = File::create(&path).map_err(|error| failed(&path, &error))?;
            Ok::<_, String>((path, file))
        };
        Ok(Self {
            page: create("md")?,
            raw: create("jsonl")?,
        })
    }

    /// Prints `text` and writes it to the page.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), String> {
        println!("{text}");
        let (path, page) = &mut self.page;
        writeln!(page, "{text}").map_err(|error| failed(path, &error))
    }

    /// Writes a line of raw results.
    pub(crate) fn keep(&mut self, result: &impl Serialize) -> Result<(), String> {
        let (path, raw) = &mut self.raw;
        let line = serde_json::to_string(result).map_err(|error| error.to_string())?;
        writeln!(raw, "{line}").map_err(|error| failed(path, &error))
    }

    pub(crate) fn places(&self) -> String {
        format!("{}\n{}", self.page.0.display(), self.raw.0.display())
    }
}

fn failed(path: &std::path::Path, error: &dyn std::error::Error) -> String {
    format!("{}: {error}", path.display())
}

/// A row of a Markdown table.
pub(crate) fn row<T: AsRef<str>>(cells: impl IntoIterator<Item = T>) -> String {
    let mut row = String::from("|");
    for cell in cells {
        row += &format!(" {} |", cell.as_ref());
    }
    row + "\n"
}

/// The median, and in brackets the least and the most.
pub(crate) fn spread(spread: Option<Spread>) -> String {
    spread.map_or_else(nothing, |spread| {
        let Spread {
            median,
            least,
            most,
        } = spread;
        format!("{median:.0} ({least:.0}–{most:.0})")
    })
}

pub(crate) fn integer(spread: Option<Spread>) -> String {
    spread.map_or_else(nothing, |spread| format!("{:.0}", spread.median))
}

pub(crate) fn part(spread: Option<Spread>) -> String {
    spread.map_or_else(nothing, |spread| format!("{:.1}", spread.median))
}

/// What was not measured.
fn nothing() -> String {
    "–".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_apart() {
        assert_eq!(row(["a", "b"]), "| a | b |\n");
    }

    #[test]
    fn figures_are_rounded_and_nothing_is_a_dash() {
        let figures = Spread::of([1.26, 10.0, 99.5]);
        assert_eq!(spread(figures), "10 (1–100)");
        assert_eq!(integer(figures), "10");
        assert_eq!(part(Spread::of([1.26])), "1.3");
        assert_eq!(spread(None), "–");
    }
}
