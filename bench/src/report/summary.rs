//! The figures at the top of the report, a few of each section, in one table. The README shows some of its rows.

use std::path::Path;

use serde_json::Value;

use crate::error::{Fallible, failed};
use crate::measure::results::Lines;
use crate::report::page::{Column, table};
use crate::report::statistics::Spread;

const BEGIN: &str = "<!-- figures: written by `cargo xtask bench report` -->\n";
const END: &str = "<!-- end of the figures -->";

const COLUMNS: [Column<[String; 3]>; 3] = [
    ("", |row| row[0].clone()),
    ("Leasehold", |row| row[1].clone()),
    ("others", |row| row[2].clone()),
];

/// Makes the tables of the report and of the README from the results in `target/bench`.
pub(crate) fn tables() -> Fallible<[String; 2]> {
    let (mut all, mut few) = (Vec::new(), Vec::new());
    for figure in FIGURES {
        let row = figure.cells(&Lines::read(figure.section)?.results()?)?;
        if figure.in_readme {
            few.push(row.clone());
        }
        all.push(row);
    }
    Ok([table(&COLUMNS, all), table(&COLUMNS, few)])
}

/// Puts the table between its marks in the text at `path`.
pub(crate) fn write_into(path: &Path, table: &str) -> Fallible {
    let text = std::fs::read_to_string(path).map_err(|error| failed(path, &error))?;
    let text = with_table(&text, table);
    let text = text.ok_or_else(|| format!("{}: no lines {BEGIN:?}, {END:?}", path.display()))?;
    Ok(std::fs::write(path, text).map_err(|error| failed(path, &error))?)
}

fn with_table(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}

/// The table between its marks, for the report.
pub(crate) fn marked(table: &str) -> String {
    format!("## In short\n\n{BEGIN}\n{table}\n{END}\n")
}

/// One row: a number, of us and of others.
#[derive(Clone, Copy, Debug)]
struct Figure {
    what: &'static str,
    in_readme: bool,
    section: &'static str,
    /// What the lines it is of say; a text is compared, too.
    of: &'static [(&'static str, &'static str)],
    /// The fields where a line says whose it is, and how much.
    whose: &'static str,
    value: &'static str,
    shown: fn(f64) -> String,
    /// First ours; others that were not measured are left out.
    names: &'static [(&'static str, &'static str)],
}

/// A number or a text, as it is written in [`Figure::of`].
fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

impl Figure {
    /// The median over all rounds.
    fn median(&self, results: &[Value], name: &str) -> Option<f64> {
        let runs = results.iter().map(|line| line.get("run").unwrap_or(line));
        let own = runs.filter(|run| {
            let is = |(field, value): &(&str, &str)| text(&run[*field]) == *value;
            self.of.iter().all(is) && (self.whose.is_empty() || run[self.whose] == name)
        });
        Spread::of(own.filter_map(|run| run[self.value].as_f64())).map(|spread| spread.median)
    }

    fn cells(&self, results: &[Value]) -> Fallible<[String; 3]> {
        let (ours, others) = self
            .names
            .split_first()
            .ok_or("a figure without a subject")?;
        let own = self
            .median(results, ours.0)
            .ok_or_else(|| format!("{}: {:?} was not measured", self.section, self.what))?;
        let others = others.iter().filter_map(|(name, shown)| {
            let value = self.median(results, name)?;
            Some(format!("{shown} {}", (self.shown)(value)))
        });
        let others: Vec<String> = others.collect();
        Ok([self.what.into(), (self.shown)(own), others.join(", ")])
    }
}

fn micros(value: f64) -> String {
    format!("{value:.0} µs")
}

fn millis(value: f64) -> String {
    format!("{value:.1} ms")
}

fn per_second(value: f64) -> String {
    format!("{value:.0}/s")
}

fn of_a_core(value: f64) -> String {
    format!("{:.1} % of a core", value * 100.0)
}

fn bytes(value: f64) -> String {
    format!("{value:.0} bytes")
}

const BARE: (&str, &str) = ("redis crate", "bare `redis` crate");
const OURS: (&str, &str) = ("leasehold", "");

const CYCLE: Figure = Figure {
    what: "acquire and release a free lock, one server",
    in_readme: true,
    section: "cycles",
    of: &[("nodes", "1"), ("in_flight", "1")],
    whose: "subject",
    value: "cycle_p50",
    shown: micros,
    names: &[
        OURS,
        BARE,
        ("rslock", "rslock"),
        ("node-redlock", "node-redlock"),
        ("redis-py", "redis-py"),
    ],
};

const MANY: Figure = Figure {
    what: "free locks per second, 64 at a time, one server",
    of: &[("nodes", "1"), ("in_flight", "64")],
    value: "cycles_per_second",
    shown: per_second,
    ..CYCLE
};

const HAND_OVER: Figure = Figure {
    what: "hand-over among 16 waiters of one client, one server",
    in_readme: true,
    section: "handover",
    of: &[("nodes", "1"), ("waiters", "16")],
    whose: "subject",
    value: "handover_p50",
    shown: micros,
    names: &[
        OURS,
        ("leasehold, a client each", "Leasehold with a client each"),
        ("BLPOP, redis crate", "bare BLPOP"),
        ("rslock", "rslock"),
        ("node-redlock", "node-redlock"),
        ("redis-py", "redis-py"),
    ],
};

const HELD: Figure = Figure {
    what: "CPU to hold 100,000 locks, TTL 30 s, one server",
    in_readme: false,
    section: "held",
    of: &[("nodes", "1"), ("locks", "100000")],
    whose: "",
    value: "client_cpu",
    shown: of_a_core,
    names: &[OURS],
};

const FIGURES: [Figure; 11] = [
    CYCLE,
    Figure {
        what: "acquire and release a free lock, five servers",
        of: &[("nodes", "5"), ("in_flight", "1")],
        ..CYCLE
    },
    MANY,
    Figure {
        what: "free locks per second, 64 at a time, five servers",
        in_readme: false,
        of: &[("nodes", "5"), ("in_flight", "64")],
        ..MANY
    },
    HAND_OVER,
    Figure {
        what: "hand-over among 16 waiters of one client, five servers",
        in_readme: false,
        of: &[("nodes", "5"), ("waiters", "16")],
        ..HAND_OVER
    },
    Figure {
        what: "commands per second of 1,000 waiters, one server",
        in_readme: false,
        section: "waiters",
        of: &[("nodes", "1"), ("waiters", "1000")],
        value: "commands",
        shown: per_second,
        names: &[OURS, ("rslock", "rslock")],
        ..HAND_OVER
    },
    HELD,
    Figure {
        what: "memory for each of these locks",
        value: "bytes_per_lock",
        shown: bytes,
        ..HELD
    },
    Figure {
        what: "free locks per second, 64 at a time, one of five servers frozen",
        in_readme: true,
        section: "frozen",
        of: &[("condition", "frozen"), ("in_flight", "64")],
        whose: "name",
        value: "cycles_per_second",
        shown: per_second,
        names: &[OURS, ("rslock", "rslock")],
    },
    Figure {
        what: "`leasehold run` on files, from start to exit",
        in_readme: true,
        section: "coldstart",
        of: &[],
        whose: "name",
        value: "p50",
        shown: millis,
        names: &[
            ("leasehold run, file store", ""),
            ("flock FILE true", "flock(1)"),
        ],
    },
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn results() -> Vec<Value> {
        let run = |subject: &str, in_flight: usize, round: usize, p50: f64| json!({"subject": subject, "nodes": 1, "in_flight": in_flight, "round": round, "cycle_p50": p50});
        vec![
            run("leasehold", 1, 0, 200.0),
            run("leasehold", 1, 1, 190.0),
            run("leasehold", 1, 2, 900.0),
            run("leasehold", 64, 0, 5.0),
            run("redis crate", 1, 0, 140.4),
            run("redis-py", 1, 0, 210.0),
        ]
    }

    #[test]
    fn a_row_has_the_medians_and_leaves_out_who_was_not_measured() {
        assert_eq!(
            CYCLE.cells(&results()).unwrap(),
            [
                "acquire and release a free lock, one server",
                "200 µs",
                "bare `redis` crate 140 µs, redis-py 210 µs"
            ]
        );
        let error = CYCLE.cells(&[]).unwrap_err().to_string();
        assert!(error.starts_with("cycles: "), "{error}");
    }

    #[test]
    fn lines_of_several_kinds_are_told_apart() {
        let figure = FIGURES[FIGURES.len() - 1];
        let results = [
            json!({"size": {"built": 7}}),
            json!({"run": {"name": "leasehold run, file store", "p50": 4.26}}),
        ];
        assert_eq!(figure.cells(&results).unwrap()[1..], ["4.3 ms", ""]);
    }

    fn part_of(text: &str) -> Option<&str> {
        let (_, rest) = text.split_once(BEGIN)?;
        rest.split_once(END).map(|(part, _)| part)
    }

    #[test]
    fn a_table_takes_the_place_of_what_stood_between_its_marks() {
        for old in ["", "\n| old |\n\n"] {
            let text = format!("# Title\n{BEGIN}{old}{END}\nThe rest\n");
            let expected = format!("# Title\n{BEGIN}\n| new |\n\n{END}\nThe rest\n");
            assert_eq!(with_table(&text, "| new |\n"), Some(expected));
        }
        assert_eq!(with_table("# Title\n", "| new |\n"), None);
    }

    #[test]
    fn readme_rows_are_rows_of_the_report() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
        let rows = |file: &str| -> Vec<String> {
            let text = read(file);
            let part = part_of(&text).unwrap();
            part.lines().map(str::to_owned).collect()
        };
        let (readme, report) = (rows("README.md"), rows("docs/performance.md"));
        let shown = |rows: &[String], figure: &Figure| {
            let start = format!("| {} | ", figure.what);
            rows.iter().filter(|row| row.starts_with(&start)).count() == 1
        };
        for figure in FIGURES {
            assert!(shown(&report, &figure), "{}", figure.what);
            assert_eq!(shown(&readme, &figure), figure.in_readme, "{}", figure.what);
        }
        for row in readme {
            assert!(report.contains(&row), "{row}");
        }
    }
}
