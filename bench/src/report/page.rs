use std::path::Path;

use crate::measure::results::failed;
use crate::report::statistics::Spread;

/// The page of a section: Markdown with charts in between.
#[derive(Debug)]
pub(crate) struct Page {
    name: &'static str,
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Text(String),
    Chart {
        name: String,
        alternative: String,
        svg: String,
    },
}

impl Page {
    pub(crate) fn new(name: &'static str, title: &str) -> Self {
        let parts = vec![Part::Text(format!("## {title}"))];
        Self { name, parts }
    }

    /// Adds a paragraph, a heading, or a table.
    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.parts.push(Part::Text(text.into()));
    }

    /// Adds a chart (`charts.rs` draws them), to be saved next to the page as `SECTION-NAME.svg`.
    /// `alternative` describes it in words.
    pub(crate) fn chart(&mut self, name: &str, alternative: &str, svg: String) {
        self.parts.push(Part::Chart {
            name: format!("{}-{name}.svg", self.name),
            alternative: alternative.into(),
            svg,
        });
    }

    /// Returns the Markdown, with the charts in `folder`, which is empty or ends in a slash.
    pub(crate) fn markdown(&self, folder: &str) -> String {
        let parts = self.parts.iter().map(|part| match part {
            Part::Text(text) => format!("{}\n", text.trim_end()),
            Part::Chart {
                name, alternative, ..
            } => format!("![{alternative}]({folder}{name})\n"),
        });
        parts.collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn write_charts(&self, folder: &Path) -> Result<(), String> {
        for part in &self.parts {
            if let Part::Chart { name, svg, .. } = part {
                let path = folder.join(name);
                std::fs::write(&path, svg).map_err(|error| failed(&path, &error))?;
            }
        }
        Ok(())
    }

    /// Writes the page and its charts into `folder`; returns the text and the path of the page.
    pub(crate) fn write(&self, folder: &Path, charts: &str) -> Result<String, String> {
        let text = self.markdown(charts);
        let path = folder.join(self.name).with_extension("md");
        std::fs::write(&path, &text).map_err(|error| failed(&path, &error))?;
        self.write_charts(folder)?;
        Ok(format!("{text}\n{}", path.display()))
    }
}

/// Returns a table: its head, then a row for each subject.
pub(crate) fn table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut text = row(head) + &row(head.map(|_| "---"));
    for cells in rows {
        text += &row(cells);
    }
    text
}

fn row<T: AsRef<str>>(cells: impl IntoIterator<Item = T>) -> String {
    let mut row = String::from("|");
    for cell in cells {
        row += &format!(" {} |", cell.as_ref());
    }
    row + "\n"
}

/// Formats the median, with the least and the greatest value in brackets.
pub(crate) fn spread(spread: Option<Spread>) -> String {
    with_decimals(spread, 0)
}

/// The same for a ratio or other small numbers.
pub(crate) fn fine_spread(spread: Option<Spread>) -> String {
    with_decimals(spread, 2)
}

fn with_decimals(spread: Option<Spread>, decimals: usize) -> String {
    spread.map_or_else(nothing, |spread| {
        let Spread {
            median,
            least,
            most,
        } = spread;
        format!("{median:.decimals$} ({least:.decimals$}–{most:.decimals$})")
    })
}

pub(crate) fn integer(spread: Option<Spread>) -> String {
    spread.map_or_else(nothing, |spread| format!("{:.0}", spread.median))
}

pub(crate) fn part(spread: Option<Spread>) -> String {
    spread.map_or_else(nothing, |spread| format!("{:.1}", spread.median))
}

pub(crate) fn percent(shares: Option<Spread>) -> String {
    shares.map_or_else(nothing, |shares| format!("{:.0} %", shares.median * 100.0))
}

/// The text for what was not measured.
fn nothing() -> String {
    "–".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_line_under_its_head() {
        let rows = [["1".to_owned(), "2".to_owned()]];
        assert_eq!(
            table(["a", "b"], rows),
            "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
        );
    }

    #[test]
    fn charts_lie_in_the_folder_that_is_said() {
        let mut page = Page::new("held", "Held");
        page.say("Text.\n");
        page.chart("cpu", "what it costs", "<svg/>".into());
        assert_eq!(
            page.markdown("charts/"),
            "## Held\n\nText.\n\n![what it costs](charts/held-cpu.svg)\n"
        );
    }

    #[test]
    fn figures_are_rounded_and_nothing_is_a_dash() {
        let figures = Spread::of([1.26, 10.0, 99.5]);
        assert_eq!(spread(figures), "10 (1–100)");
        assert_eq!(fine_spread(Spread::of([0.5])), "0.50 (0.50–0.50)");
        assert_eq!(integer(figures), "10");
        assert_eq!(part(Spread::of([1.26])), "1.3");
        assert_eq!(percent(Spread::of([0.126])), "13 %");
        assert_eq!(spread(None), "–");
    }
}
