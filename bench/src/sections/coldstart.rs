//! A command under a lock, from a cold start: what `leasehold run` costs compared with flock(1).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use leasehold_testkit::servers::RedisSet;
use serde::{Deserialize, Serialize};

use crate::measure::results::{Lines, Results};
use crate::options::Options;
use crate::report::charts::{Bar, Group, Role, bars};
use crate::report::figures::number;
use crate::report::page::{Page, fine_spread, table};
use crate::report::statistics::{Spread, percentile, sorted};
use crate::sections::Section;

pub(crate) const SECTION: Section = Section {
    name: "coldstart",
    title: "`leasehold run` from start to exit",
    measure,
    tell,
};

/// The reference for the others.
const FLOCK: &str = "flock FILE true";

const SUBJECTS: [(&str, Role); 5] = [
    ("true", Role::Bound),
    (FLOCK, Role::Peer),
    ("leasehold run, file store", Role::Ours),
    ("leasehold run, one Redis", Role::Ours),
    ("leasehold run, five Redis", Role::Ours),
];

const COLUMNS: [&str; 4] = ["command", "p50 ms", "p99 ms", "÷ flock(1)"];

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

fn measure(options: &Options, results: &mut Results) -> Result<(), String> {
    let program = program()?;
    if !program.is_file() {
        let why = format!("{} was not built", program.display());
        return results.skip("leasehold run", &why);
    }
    results.keep(&size(&program)?)?;
    let folder = folder()?;
    let servers = RedisSet::start(5);
    let alone = RedisSet::start(1);
    let all = servers.urls().join(",");
    let file = folder.path().join("lock").display().to_string();
    let store = format!("file://{}", folder.path().display());
    let own = program.display().to_string();
    let alone = &alone.urls()[0];
    init(&program, &all)?;
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
                took.push(time(line)?);
            }
        }
        for ((name, _), took) in SUBJECTS.iter().zip(took) {
            let took = sorted(took);
            let figure = |percent| percentile(&took, percent).unwrap_or_default();
            results.keep(&ResultLine::Run(Run {
                name: (*name).into(),
                round: results.round(round),
                p50: figure(50),
                p99: figure(99),
            }))?;
        }
    }
    Ok(())
}

/// In the folder of this program, where `cargo xtask bench` builds it.
fn program() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(own.with_file_name("leasehold"))
}

/// In memory, where the locks of one machine are, so that the disk is not measured.
fn folder() -> Result<tempfile::TempDir, String> {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    made.map_err(|error| format!("a folder for locks: {error}"))
}

fn size(program: &Path) -> Result<ResultLine, String> {
    let length = |path: &Path| std::fs::metadata(path).ok()?.len().try_into().ok();
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let stripped = folder.path().join("leasehold");
    let mut strip = Command::new("strip");
    // Without strip(1) its size is not known.
    let _ = strip.arg("-o").arg(&stripped).arg(program).status();
    Ok(ResultLine::Size {
        built: length(program).ok_or_else(|| format!("{} cannot be read", program.display()))?,
        stripped: length(&stripped),
    })
}

fn init(program: &Path, store: &str) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(["init", "--store", store]);
    succeed(&mut command)
}

fn time(line: &[&str]) -> Result<f64, String> {
    let [program, arguments @ ..] = line else {
        return Err("no command".into());
    };
    let mut command = Command::new(program);
    command.args(arguments);
    let began = Instant::now();
    succeed(&mut command)?;
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{command:?} ended with {status}"))
    }
}

fn tell(lines: &Lines, page: &mut Page) -> Result<(), String> {
    page.say(include_str!("../../pages/coldstart.md"));
    let (mut runs, mut sizes) = (Vec::new(), Vec::new());
    for line in lines.results()? {
        match line {
            ResultLine::Run(run) => runs.push(run),
            ResultLine::Size { built, stripped } => sizes.push((built, stripped)),
        }
    }
    let (mut rows, mut shown) = (Vec::new(), Vec::new());
    for (name, role) in SUBJECTS {
        let own: Vec<&Run> = runs.iter().filter(|run| run.name == name).collect();
        let over = |value: fn(&Run) -> f64| Spread::of(own.iter().map(|run| value(run)));
        rows.push([
            format!("`{name}`"),
            fine_spread(over(|run| run.p50)),
            fine_spread(over(|run| run.p99)),
            fine_spread(ratio(&own, &runs)),
        ]);
        shown.extend(over(|run| run.p50).map(|value| Bar {
            label: name.into(),
            value,
            role,
        }));
    }
    let title = "From start to end of the command, p50 in ms";
    let group = Group {
        title: "a new process each time".into(),
        bars: shown,
    };
    page.chart("start", title, bars(title, None, &[group])?);
    page.say(table(COLUMNS, rows));
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

fn ratio(own: &[&Run], all: &[Run]) -> Option<Spread> {
    Spread::of(own.iter().filter_map(|run| {
        let flock = all
            .iter()
            .find(|other| other.name == FLOCK && other.round == run.round)?;
        Some(run.p50 / flock.p50)
    }))
}
