//! What a lock costs where no clock of a busy machine is asked: instructions of the client, and time
//! inside the server's commands.

mod server;

use std::process::Command;

use leasehold_instructions::{PATHS, Path, count};
use serde::{Deserialize, Serialize};

use crate::error::Fallible;
use crate::measure::peers::answer;
use crate::measure::results::{Lines, Results};
use crate::measure::subject::Role;
use crate::options::Options;
use crate::report::charts::{Bar, Group};
use crate::report::page::{Page, SampleColumn, comparison, fine_spread};
use crate::report::statistics::Sample;

use server::{ServerCommand, Use};

/// Paths of ours, and what the client library alone takes for the same.
const PAIRS: [(&str, &str); 3] = [
    ("redis", "raw-redis"),
    ("redis-64", "raw-redis-64"),
    ("redis-5-64", "raw-redis-5-64"),
];

const PATH_COLUMNS: [SampleColumn<Count>; 4] = [
    ("path", |of| format!("`{}`", of.first().path)),
    ("what it does", |of| {
        Path::named(&of.first().path).map_or_else(|_| String::new(), |path| path.what.into())
    }),
    ("thousand instructions", |of| {
        of.part(|run| run.count / 1000.0)
    }),
    ("÷ the redis crate alone", |of| {
        let reference = |run: &Count, other: &Count| {
            let mut pairs = PAIRS.iter();
            pairs.any(|pair| *pair == (&run.path, &other.path)) && other.round == run.round
        };
        fine_spread(of.ratio(reference, |run| run.count))
    }),
];

const SERVER_COLUMNS: [SampleColumn<Use>; 4] = [
    ("on one Redis", |of| of.first().command.to_string()),
    ("µs in commands", |of| of.fine_spread(|run| run.micros)),
    ("÷ the bare command", |of| {
        let reference = |run: &Use, other: &Use| {
            (other.command, other.round) == (run.command.bound(), run.round)
        };
        fine_spread(of.ratio(reference, |run| run.micros))
    }),
    ("server CPU µs in all", |of| {
        of.fine_spread(|run| run.processor)
    }),
];

/// A line of results.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ResultLine {
    Instructions(Count),
    Server(Use),
}

/// The instructions of a path.
#[derive(Debug, Serialize, Deserialize)]
struct Count {
    path: String,
    round: usize,
    count: f64,
}

pub(super) fn measure(options: &Options, results: &mut Results) -> Fallible {
    count_instructions(options, results)?;
    for round in 0..options.rounds(1, 5) {
        for used in server::measure(results.round(round), options.pick(1000, 5000))? {
            results.keep(&ResultLine::Server(used))?;
        }
    }
    Ok(())
}

fn count_instructions(options: &Options, results: &mut Results) -> Fallible {
    if answer(Command::new("valgrind").arg("--version")).is_none() {
        return results.skip("instructions", "there is no valgrind");
    }
    let quick = PAIRS[0];
    for path in &PATHS {
        let is_wanted = !options.quick || [quick.0, quick.1].contains(&path.name);
        if is_wanted && options.wants(path.name) {
            eprintln!("cost: instructions: {}", path.name);
            results.keep(&ResultLine::Instructions(Count {
                path: path.name.into(),
                round: results.round(0),
                count: count(path)?,
            }))?;
        }
    }
    Ok(())
}

pub(super) fn write_page(lines: &Lines, page: &mut Page) -> Fallible {
    page.title("What a lock costs");
    let (mut counts, mut uses) = (Vec::new(), Vec::new());
    for line in lines.results()? {
        match line {
            ResultLine::Instructions(count) => counts.push(count),
            ResultLine::Server(used) => uses.push(used),
        }
    }
    page.say(include_str!("../../../pages/cost.md"));
    tell_instructions(&counts, page)?;
    let rows = ServerCommand::ALL.map(|command| Sample::of(&uses, |used| used.command == command));
    page.say(comparison(&SERVER_COLUMNS, rows.into_iter().flatten()));
    Ok(())
}

fn tell_instructions(counts: &[Count], page: &mut Page) -> Fallible {
    let sample = |name: &str| Sample::of(counts, |count| count.path == name);
    let bar = |name: &str, label, role| {
        let counted = sample(name)?.over(|count| count.count / 1000.0);
        Bar::of(label, role, counted)
    };
    let groups = PAIRS.iter().map(|(ours, bound)| Group {
        title: (*ours).into(),
        bars: [
            bar(ours, "Leasehold", Role::Ours),
            bar(bound, "redis crate alone", Role::Bound),
        ]
        .into_iter()
        .flatten()
        .collect(),
    });
    let groups: Vec<Group> = groups.filter(|group| !group.bars.is_empty()).collect();
    if groups.is_empty() {
        return Ok(());
    }
    let title = "Thousands of instructions of the client per acquire and release";
    page.bars("instructions", title, None, &groups)?;
    let rows = PATHS.iter().filter_map(|path| sample(path.name));
    page.say(comparison(&PATH_COLUMNS, rows));
    Ok(())
}
