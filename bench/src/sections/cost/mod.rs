//! What a lock costs where no clock of a busy machine is asked: instructions of the client, and time
//! inside the server's commands.

mod server;

use std::process::Command;

use leasehold_instructions::{PATHS, Path, count};
use serde::{Deserialize, Serialize};

use crate::measure::results::{Lines, Results};
use crate::measure::surroundings::answer;
use crate::options::Options;
use crate::report::charts::{Bar, Group, Role, bars};
use crate::report::page::{Page, fine_spread, table};
use crate::report::statistics::Spread;
use crate::sections::Section;

use server::{ServerCommand, Use};

pub(crate) const SECTION: Section = Section {
    name: "cost",
    title: "What a lock costs",
    measure,
    tell,
};

/// Paths of ours, and what the client library alone takes for the same.
const PAIRS: [(&str, &str); 3] = [
    ("redis", "raw-redis"),
    ("redis-64", "raw-redis-64"),
    ("redis-5-64", "raw-redis-5-64"),
];

/// A line of results.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ResultLine {
    Instructions {
        path: String,
        round: usize,
        count: f64,
    },
    Server(Use),
}

fn measure(options: &Options, results: &mut Results) -> Result<(), String> {
    count_instructions(options, results)?;
    for round in 0..options.rounds(1, 5) {
        for used in server::measure(results.round(round), options.pick(1000, 5000))? {
            results.keep(&ResultLine::Server(used))?;
        }
    }
    Ok(())
}

fn count_instructions(options: &Options, results: &mut Results) -> Result<(), String> {
    if answer(Command::new("valgrind").arg("--version")).is_none() {
        return results.skip("instructions", "there is no valgrind");
    }
    let quick = PAIRS[0];
    for path in &PATHS {
        let is_wanted = !options.quick || [quick.0, quick.1].contains(&path.name);
        if is_wanted && options.wants(path.name) {
            eprintln!("cost: instructions: {}", path.name);
            results.keep(&ResultLine::Instructions {
                path: path.name.into(),
                round: results.round(0),
                count: count(path)?,
            })?;
        }
    }
    Ok(())
}

fn tell(lines: &Lines, page: &mut Page) -> Result<(), String> {
    let (mut counts, mut uses) = (Vec::new(), Vec::new());
    for line in lines.results()? {
        match line {
            ResultLine::Instructions { path, round, count } => counts.push((path, round, count)),
            ResultLine::Server(used) => uses.push(used),
        }
    }
    page.say(include_str!("../../../pages/cost.md"));
    tell_instructions(&counts, page)?;
    tell_server(&uses, page)?;
    Ok(())
}

/// A path, a round, and how many there were.
type Count = (String, usize, f64);

fn tell_instructions(counts: &[Count], page: &mut Page) -> Result<(), String> {
    let of = |name| counts_of(counts, name);
    let bound = |name: &'static str| {
        let pair = PAIRS.iter().find(|(ours, _)| *ours == name)?;
        Some(of(name).zip(of(pair.1)).map(|(ours, bound)| ours / bound))
    };
    let mut rows = Vec::new();
    for path in &PATHS {
        let Path { name, what, .. } = path;
        if let Some(counted) = Spread::of(of(name)) {
            let ratio = bound(name).and_then(Spread::of);
            rows.push([
                format!("`{name}`"),
                (*what).into(),
                format!("{:.1}", counted.median / 1000.0),
                fine_spread(ratio),
            ]);
        }
    }
    let groups: Vec<Group> = PAIRS
        .iter()
        .map(|(ours, bound)| Group {
            title: (*ours).into(),
            bars: [
                (ours, "Leasehold", Role::Ours),
                (bound, "redis crate alone", Role::Bound),
            ]
            .into_iter()
            .filter_map(|(path, label, role)| {
                Some(Bar {
                    label: label.into(),
                    value: Spread::of(of(path).map(|count| count / 1000.0))?,
                    role,
                })
            })
            .collect(),
        })
        .filter(|group| !group.bars.is_empty())
        .collect();
    if groups.is_empty() {
        return Ok(());
    }
    let title = "Thousands of instructions of the client per acquire and release";
    page.chart("instructions", title, bars(title, None, &groups)?);
    page.say(table(
        [
            "path",
            "what it does",
            "thousand instructions",
            "÷ the redis crate alone",
        ],
        rows,
    ));
    Ok(())
}

fn counts_of<'a>(counts: &'a [Count], name: &'a str) -> impl Iterator<Item = f64> + use<'a> {
    let own = counts.iter().filter(move |(path, ..)| path == name);
    own.map(|(_, _, count)| *count)
}

fn tell_server(uses: &[Use], page: &mut Page) -> Result<(), String> {
    let mut rows = Vec::new();
    for command in ServerCommand::ALL {
        let own: Vec<&Use> = uses.iter().filter(|used| used.command == command).collect();
        let over = |value: fn(&Use) -> f64| Spread::of(own.iter().map(|used| value(used)));
        let ratio = own.iter().filter_map(|used| {
            let bare = |other: &&Use| other.command == command.bound() && other.round == used.round;
            Some(used.micros / uses.iter().find(bare)?.micros)
        });
        rows.push([
            command.to_string(),
            fine_spread(over(|used| used.micros)),
            fine_spread(Spread::of(ratio)),
            fine_spread(over(|used| used.processor)),
        ]);
    }
    page.say(table(
        [
            "on one Redis",
            "µs in commands",
            "÷ the bare command",
            "server CPU µs in all",
        ],
        rows,
    ));
    Ok(())
}
