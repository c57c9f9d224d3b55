use std::path::Path;

use crate::error::{Fallible, failed};
use crate::report::charts::{self, Group, Series};
use crate::report::statistics::{Sample, Spread};

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
    pub(crate) fn new(name: &'static str) -> Self {
        let parts = Vec::new();
        Self { name, parts }
    }

    pub(crate) fn title(&mut self, title: &str) {
        self.say(format!("## {title}"));
    }

    /// Adds a paragraph, a heading, or a table.
    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.parts.push(Part::Text(text.into()));
    }

    /// Adds a chart of bars, to be saved next to the page as `SECTION-NAME.svg`; `line` marks what others are
    /// set against.
    pub(crate) fn bars(
        &mut self,
        name: &str,
        title: &str,
        line: Option<f64>,
        groups: &[Group],
    ) -> Fallible {
        self.chart(name, title, charts::bars(title, line, groups)?);
        Ok(())
    }

    /// Adds a chart of lines in the same way.
    pub(crate) fn lines(
        &mut self,
        name: &str,
        title: &str,
        axis: &str,
        series: &[Series],
    ) -> Fallible {
        self.chart(name, title, charts::lines(title, axis, series)?);
        Ok(())
    }

    /// `alternative` describes the chart in words.
    fn chart(&mut self, name: &str, alternative: &str, svg: String) {
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

    pub(crate) fn write_charts(&self, folder: &Path) -> Fallible {
        for part in &self.parts {
            if let Part::Chart { name, svg, .. } = part {
                let path = folder.join(name);
                std::fs::write(&path, svg).map_err(|error| failed(&path, &error))?;
            }
        }
        Ok(())
    }

    /// Writes the page and its charts into `folder`; returns the text and the path of the page.
    pub(crate) fn write(&self, folder: &Path) -> Fallible<String> {
        let text = self.markdown("");
        let path = folder.join(self.name).with_extension("md");
        std::fs::write(&path, &text).map_err(|error| failed(&path, &error))?;
        self.write_charts(folder)?;
        Ok(format!("{text}\n{}", path.display()))
    }
}

/// A column of a table: its head, and the cell that it shows of a row.
pub(crate) type Column<T> = (&'static str, fn(&T) -> String);

/// A column of a table that compares samples.
pub(crate) type SampleColumn<R> = (&'static str, for<'a> fn(&Sample<'a, R>) -> String);

/// Returns a table with a row for each item.
pub(crate) fn table<T>(columns: &[Column<T>], items: impl IntoIterator<Item = T>) -> String {
    let cells = |item| columns.iter().map(|(_, cell)| cell(&item)).collect();
    lines(
        columns.iter().map(|(head, _)| *head),
        items.into_iter().map(cells),
    )
}

/// Returns a table with a row for each sample.
pub(crate) fn comparison<'a, R: 'a>(
    columns: &[SampleColumn<R>],
    samples: impl IntoIterator<Item = Sample<'a, R>>,
) -> String {
    let cells = |sample| columns.iter().map(|(_, cell)| cell(&sample)).collect();
    lines(
        columns.iter().map(|(head, _)| *head),
        samples.into_iter().map(cells),
    )
}

fn lines<'a>(
    heads: impl Iterator<Item = &'a str> + Clone,
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let under = row(heads.clone().map(|_| "---"));
    row(heads) + &under + &rows.map(row).collect::<String>()
}

fn row<T: AsRef<str>>(cells: impl IntoIterator<Item = T>) -> String {
    let mut row = String::from("|");
    for cell in cells {
        row += &format!(" {} |", cell.as_ref());
    }
    row + "\n"
}

impl<R> Sample<'_, R> {
    /// Formats the median, with the least and the greatest value in brackets.
    pub(crate) fn spread<V: Into<Option<f64>>>(&self, value: impl Fn(&R) -> V) -> String {
        with_decimals(self.over(value), 0)
    }

    /// The same for small numbers.
    pub(crate) fn fine_spread<V: Into<Option<f64>>>(&self, value: impl Fn(&R) -> V) -> String {
        fine_spread(self.over(value))
    }

    /// Formats the median alone.
    pub(crate) fn integer<V: Into<Option<f64>>>(&self, value: impl Fn(&R) -> V) -> String {
        self.median(value, |median| format!("{median:.0}"))
    }

    /// The same with one decimal.
    pub(crate) fn part<V: Into<Option<f64>>>(&self, value: impl Fn(&R) -> V) -> String {
        self.median(value, |median| format!("{median:.1}"))
    }

    /// The same for a share.
    pub(crate) fn percent<V: Into<Option<f64>>>(&self, value: impl Fn(&R) -> V) -> String {
        self.median(value, |median| format!("{:.0} %", median * 100.0))
    }

    fn median<V: Into<Option<f64>>>(
        &self,
        value: impl Fn(&R) -> V,
        shown: fn(f64) -> String,
    ) -> String {
        let median = self.over(value).map(|spread| spread.median);
        median.map_or_else(nothing, shown)
    }
}

/// Formats a ratio or other small numbers.
pub(crate) fn fine_spread(spread: Option<Spread>) -> String {
    with_decimals(spread, 2)
}

fn with_decimals(spread: Option<Spread>, decimals: usize) -> String {
    spread.map_or_else(nothing, |spread| {
        let Spread { median, .. } = spread;
        let (least, most) = (spread.least, spread.most);
        format!("{median:.decimals$} ({least:.decimals$}–{most:.decimals$})")
    })
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
        let columns: [Column<usize>; 2] =
            [("a", usize::to_string), ("b", |row| (row + 1).to_string())];
        assert_eq!(
            table(&columns, [1]),
            "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
        );
    }

    #[test]
    fn charts_lie_in_the_folder_that_is_said() {
        let mut page = Page::new("held");
        page.title("Held");
        page.say("Text.\n");
        page.chart("cpu", "what it costs", "<svg/>".into());
        assert_eq!(
            page.markdown("charts/"),
            "## Held\n\nText.\n\n![what it costs](charts/held-cpu.svg)\n"
        );
    }

    #[test]
    fn figures_are_rounded_and_nothing_is_a_dash() {
        let figures = Sample::of(&[1.26, 10.0, 99.5], |_| true).unwrap();
        assert_eq!(figures.spread(|run| *run), "10 (1–100)");
        assert_eq!(fine_spread(Spread::of([0.5])), "0.50 (0.50–0.50)");
        assert_eq!(figures.integer(|run| *run), "10");
        assert_eq!(figures.part(|run| run / 8.0), "1.2");
        assert_eq!(figures.percent(|run| run / 80.0), "12 %");
        assert_eq!(figures.spread(|_| None), "–");
    }
}
