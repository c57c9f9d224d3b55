//! A command under a lock, from a cold start: what `leasehold run` costs compared with flock(1).

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use leasehold_testkit::servers::RedisSet;
use serde::{Deserialize, Serialize};

use crate::error::Fallible;
use crate::measure::results::{Lines, Results};
use crate::measure::subject::Role;
use crate::options::Options;
use crate::report::charts::{Bar, Group};
use crate::report::figures::number;
use crate::report::page::{Page, SampleColumn, comparison, fine_spread};
use crate::report::statistics::{Sample, p50_and_p99};
use crate::sections::files;

/// The reference for the others.
const FLOCK: &str = "flock FILE true";

const SUBJECTS: [(&str, Role); 5] = [
    ("true", Role::Bound),
    (FLOCK, Role::Peer),
    ("leasehold run, file store", Role::Ours),
    ("leasehold run, one Redis", Role::Ours),
    ("leasehold run, five Redis", Role::Ours),
];

const COLUMNS: [SampleColumn<Run>; 4] = [
    ("command", |of| format!("`{}`", of.first().name)),
    ("p50 ms", |of| of.fine_spread(|run| run.p50)),
    ("p99 ms", |of| of.fine_spread(|run| run.p99)),
    ("÷ flock(1)", |of| {
        let reference = |run: &Run, other: &Run| other.name == FLOCK && other.round == run.round;
        fine_spread(of.ratio(reference, |run| run.p50))
    }),
];

/// A line of results.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ResultLine {
    Run(Run),
    /// Of the command's file, in bytes.
    Size {
        built: usize,
        stripped: Option<usize>,
    },
}

/// One command in one round, in milliseconds.
#[derive(Debug, Serialize, Deserialize)]
struct Run {
    name: String,
    round: usize,
    p50: f64,
    p99: f64,
}

pub(super) fn measure(options: &Options, results: &mut Results) -> Fallible {
    // In the folder of this program, where `cargo xtask bench` builds it.
    let program = std::env::current_exe()?.with_file_name("leasehold");
    if !program.is_file() {
        let why = format!("{} was not built", program.display());
        return results.skip("leasehold run", &why);
    }
    results.keep(&size(&program)?)?;
    // In memory if possible, where the locks of one machine are, so that the disk is not measured.
    let folder = tempfile::tempdir_in(files::memory().unwrap_or_else(std::env::temp_dir))?;
    let servers = RedisSet::start(5);
    let alone = RedisSet::start(1);
    let all = servers.urls().join(",");
    let file = folder.path().join("lock").display().to_string();
    let store = format!("file://{}", folder.path().display());
    let own = program.display().to_string();
    let alone = &alone.urls()[0];
    run(&[&own, "init", "--store", &all])?;
    let lines: [&[&str]; 5] = [
        &["true"],
        &["flock", &file, "true"],
        &[&own, "run", "--store", &store, "bench", "--", "true"],
        &[&own, "run", "--store", alone, "bench", "--", "true"],
        &[&own, "run", "--store", &all, "bench", "--", "true"],
    ];
    for round in 0..options.rounds(1, 5) {
        let mut took = lines.map(|_| Vec::new());
        for _ in 0..options.pick(15, 60) {
            for (line, took) in lines.iter().zip(&mut took) {
                let began = Instant::now();
                run(line)?;
                took.push(began.elapsed().as_secs_f64() * 1e3);
            }
        }
        for ((name, _), took) in SUBJECTS.iter().zip(took) {
            let [p50, p99] = p50_and_p99(took);
            results.keep(&ResultLine::Run(Run {
                name: (*name).into(),
                round: results.round(round),
                p50,
                p99,
            }))?;
        }
    }
    Ok(())
}

fn size(program: &Path) -> Fallible<ResultLine> {
    let length = |path: &Path| std::fs::metadata(path).ok()?.len().try_into().ok();
    let folder = tempfile::tempdir()?;
    let stripped = folder.path().join("leasehold");
    let mut strip = Command::new("strip");
    // Without strip(1) its size is not known.
    let _ = strip.arg("-o").arg(&stripped).arg(program).status();
    Ok(ResultLine::Size {
        built: length(program).ok_or_else(|| format!("{} cannot be read", program.display()))?,
        stripped: length(&stripped),
    })
}

fn run(line: &[&str]) -> Fallible {
    let status = Command::new(line[0])
        .args(&line[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("{line:?}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{line:?} ended with {status}").into())
    }
}

pub(super) fn write_page(lines: &Lines, page: &mut Page) -> Fallible {
    page.title("`leasehold run` from start to exit");
    page.say(include_str!("../../pages/coldstart.md"));
    let (mut runs, mut sizes) = (Vec::new(), Vec::new());
    for line in lines.results()? {
        match line {
            ResultLine::Run(run) => runs.push(run),
            ResultLine::Size { built, stripped } => sizes.push((built, stripped)),
        }
    }
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for (name, role) in SUBJECTS {
        if let Some(sample) = Sample::of(&runs, |run| run.name == name) {
            bars.extend(Bar::of(name, role, sample.over(|run| run.p50)));
            rows.push(sample);
        }
    }
    let title = "From start to end of the command, p50 in ms";
    let group = Group {
        title: "a new process each time".into(),
        bars,
    };
    page.bars("start", title, None, &[group])?;
    page.say(comparison(&COLUMNS, rows));
    if let Some((built, stripped)) = sizes.last() {
        let mebibytes = |bytes| format!("{:.1} MiB", number(bytes) / f64::from(1 << 20));
        let stripped =
            stripped.map_or_else(String::new, |it| format!(", stripped {}", mebibytes(it)));
        page.say(format!(
            "The command's file: {}{stripped}.",
            mebibytes(*built)
        ));
    }
    Ok(())
}
