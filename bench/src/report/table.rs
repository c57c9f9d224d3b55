use std::iter::Sum;

use super::statistics::Spread;

/// What one subject did in one round.
#[derive(Debug)]
pub(crate) struct Run<T> {
    pub(crate) subject: &'static str,
    pub(crate) round: usize,
    pub(crate) seen: T,
}

/// The runs of one row of a table, and all runs that they are compared with.
#[derive(Debug)]
pub(crate) struct Row<'a, T> {
    own: Vec<&'a Run<T>>,
    all: &'a [Run<T>],
}

/// A column of a table: its head, and the cell that it shows of a row.
pub(crate) type Column<T> = (&'static str, for<'a> fn(&Row<'a, T>) -> String);

impl<'a, T> Row<'a, T> {
    /// The runs for which `is_own` holds; `None` if there are none.
    pub(crate) fn of(all: &'a [Run<T>], is_own: impl Fn(&Run<T>) -> bool) -> Option<Self> {
        let own: Vec<&Run<T>> = all.iter().filter(|run| is_own(run)).collect();
        (!own.is_empty()).then_some(Self { own, all })
    }

    /// A row for each subject, in the order of their first runs.
    pub(crate) fn by_subject(all: &'a [Run<T>]) -> Vec<Self> {
        let mut rows: Vec<Self> = Vec::new();
        for run in all {
            match rows.iter_mut().find(|row| row.subject() == run.subject) {
                Some(row) => row.own.push(run),
                None => rows.push(Self {
                    own: vec![run],
                    all,
                }),
            }
        }
        rows
    }

    pub(crate) fn subject(&self) -> &'static str {
        self.own[0].subject
    }

    /// What one of the runs saw, for what all of them have in common.
    pub(crate) fn first(&self) -> &'a T {
        &self.own[0].seen
    }

    pub(crate) fn seen(&self) -> impl Iterator<Item = &'a T> {
        self.own.iter().map(|run| &run.seen)
    }

    pub(crate) fn over(&self, value: impl Fn(&T) -> f64) -> Option<Spread> {
        Spread::of(self.seen().map(value))
    }

    /// The value of each run, as a multiple of that of its reference: the run of the same round for which
    /// `is_reference` holds.
    pub(crate) fn ratio(
        &self,
        is_reference: impl Fn(&Run<T>) -> bool,
        value: impl Fn(&T) -> f64,
    ) -> String {
        let ratios = self.own.iter().filter_map(|run| {
            let is_right = |other: &&Run<T>| other.round == run.round && is_reference(other);
            Some(value(&run.seen) / value(&self.all.iter().find(is_right)?.seen))
        });
        with_decimals(Spread::of(ratios), 2)
    }

    /// Formats the median, with the least and the greatest value in brackets.
    pub(crate) fn spread(&self, value: impl Fn(&T) -> f64) -> String {
        with_decimals(self.over(value), 0)
    }

    /// The same for small numbers.
    pub(crate) fn fine_spread(&self, value: impl Fn(&T) -> f64) -> String {
        with_decimals(self.over(value), 2)
    }

    /// Formats the median alone.
    pub(crate) fn integer(&self, value: impl Fn(&T) -> f64) -> String {
        self.median(value, |median| format!("{median:.0}"))
    }

    /// The same with one decimal.
    pub(crate) fn part(&self, value: impl Fn(&T) -> f64) -> String {
        self.median(value, |median| format!("{median:.1}"))
    }

    /// The same for a share.
    pub(crate) fn percent(&self, value: impl Fn(&T) -> f64) -> String {
        self.median(value, |median| format!("{:.1} %", median * 100.0))
    }

    /// Formats the sum over all runs.
    pub(crate) fn total<N: Sum + ToString>(&self, value: impl Fn(&T) -> N) -> String {
        self.seen().map(value).sum::<N>().to_string()
    }

    pub(crate) fn rounds(&self) -> String {
        self.own.len().to_string()
    }

    fn median(&self, value: impl Fn(&T) -> f64, shown: fn(f64) -> String) -> String {
        let median = self.over(value).map(|spread| spread.median);
        median.map_or_else(nothing, shown)
    }
}

/// Returns a Markdown table.
pub(crate) fn table<'a, T: 'a>(
    columns: &[Column<T>],
    rows: impl IntoIterator<Item = Row<'a, T>>,
) -> String {
    let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    let mut table = line(&heads) + &line(&vec!["---"; heads.len()]);
    for row in rows {
        let cells: Vec<String> = columns.iter().map(|(_, cell)| cell(&row)).collect();
        table += &line(&cells);
    }
    table
}

/// A line of a Markdown table.
pub(crate) fn line<C: AsRef<str>>(cells: &[C]) -> String {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    format!("| {} |\n", cells.join(" | "))
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

    fn run(subject: &'static str, round: usize, seen: f64) -> Run<f64> {
        Run {
            subject,
            round,
            seen,
        }
    }

    #[test]
    fn a_ratio_is_of_the_same_round() {
        let runs = [
            run("bare", 0, 100.0),
            run("rslock", 0, 50.0),
            run("rslock", 1, 600.0),
            run("bare", 1, 1000.0),
        ];
        let columns: [Column<f64>; 3] = [
            ("subject", |row| row.subject().into()),
            ("rate", |row| row.spread(|rate| *rate)),
            ("÷ bare", |row| {
                row.ratio(|run| run.subject == "bare", |rate| *rate)
            }),
        ];
        assert_eq!(
            table(&columns, Row::by_subject(&runs)),
            "| subject | rate | ÷ bare |\n| --- | --- | --- |\n\
             | bare | 550 (100–1000) | 1.00 (1.00–1.00) |\n\
             | rslock | 325 (50–600) | 0.55 (0.50–0.60) |\n"
        );
    }

    #[test]
    fn without_its_reference_a_ratio_is_a_dash() {
        let runs = [run("rslock", 0, 50.0), run("bare", 1, 1.0)];
        let row = Row::of(&runs, |run| run.subject == "rslock").unwrap();
        assert_eq!(row.ratio(|run| run.subject == "bare", |rate| *rate), "–");
    }
}
