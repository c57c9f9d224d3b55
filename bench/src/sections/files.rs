//! The file store compared with flock(2): a free lock, acquired and released again and again.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use leasehold::blocking::Client;
use leasehold_file::FileStore;
use serde::{Deserialize, Serialize};

use crate::measure::results::{Lines, Results};
use crate::options::Options;
use crate::report::charts::{Bar, Group, Role, bars};
use crate::report::figures::number;
use crate::report::page::{Page, fine_spread, integer, spread, table};
use crate::report::statistics::{Spread, percentile, sorted};
use crate::sections::Section;

pub(crate) const SECTION: Section = Section {
    name: "files",
    title: "The file store",
    measure,
    tell,
};

/// The reference for the others: a fence as durable as ours, and nothing else.
const FENCED: &str = "flock(2) and a synced number";

const SUBJECTS: [(&str, Role); 4] = [
    ("leasehold", Role::Ours),
    (FENCED, Role::Bound),
    ("flock(2), file opened each time", Role::Bound),
    ("flock(2), file kept open", Role::Bound),
];

const COLUMNS: [&str; 6] = [
    "folder",
    "subject",
    "cycles/s",
    "÷ flock(2) and a synced number",
    "p50 µs",
    "p99 µs",
];

/// One subject in one folder and round.
#[derive(Debug, Serialize, Deserialize)]
struct Run {
    name: String,
    folder: String,
    round: usize,
    cycles_per_second: f64,
    p50: f64,
    p99: f64,
}

fn measure(options: &Options, results: &mut Results) -> Result<(), String> {
    for round in 0..options.rounds(1, 5) {
        for (kind, place) in places() {
            let folder = tempfile::tempdir_in(&place);
            let folder = folder.map_err(|error| format!("{}: {error}", place.display()))?;
            for turn in 0..SUBJECTS.len() {
                // Rotates the order, so that no subject always follows the same other one.
                let (name, _) = SUBJECTS[(turn + round) % SUBJECTS.len()];
                if options.wants(name) {
                    let took = go_round(name, folder.path(), options)?;
                    results.keep(&Run::of(name, kind, results.round(round), &took))?;
                }
            }
        }
    }
    Ok(())
}

/// The folders for the locks: one on a disk, and one in memory like `/run/lock`.
fn places() -> Vec<(&'static str, PathBuf)> {
    let memory = PathBuf::from("/dev/shm");
    let mut places = vec![("temporary files", std::env::temp_dir())];
    if memory.is_dir() {
        places.push(("memory", memory));
    }
    places
}

fn go_round(name: &str, folder: &Path, options: &Options) -> Result<Vec<f64>, String> {
    let mut cycle = cycle(name, folder)?;
    cycle()?;
    let end = Instant::now() + Duration::from_millis(options.pick(300, 1000));
    let mut took = Vec::new();
    loop {
        let began = Instant::now();
        if began >= end {
            return Ok(sorted(took));
        }
        cycle()?;
        took.push(began.elapsed().as_secs_f64() * 1e6);
    }
}

type Cycle = Box<dyn FnMut() -> Result<(), String>>;

fn cycle(name: &str, folder: &Path) -> Result<Cycle, String> {
    if name == "leasehold" {
        let store = FileStore::open(folder.join("store")).map_err(text)?;
        let lock = Client::new(store).lock("free");
        return Ok(Box::new(move || {
            let guard = lock.acquire().map_err(text)?;
            guard.release().map(drop).map_err(text)
        }));
    }
    let path = folder.join("flock");
    let mut file = open(&path)?;
    Ok(match name {
        FENCED => Box::new(move || {
            file.lock().map_err(text)?;
            file.rewind().map_err(text)?;
            file.write_all(&[7; 64]).map_err(text)?;
            file.sync_data().map_err(text)?;
            file.unlock().map_err(text)
        }),
        "flock(2), file kept open" => Box::new(move || {
            file.lock().map_err(text)?;
            file.unlock().map_err(text)
        }),
        _ => Box::new(move || open(&path)?.lock().map_err(text)),
    })
}

fn open(path: &Path) -> Result<File, String> {
    let mut options = File::options();
    let opened = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path);
    opened.map_err(|error| format!("{}: {error}", path.display()))
}

fn text(error: impl std::error::Error) -> String {
    error.to_string()
}

impl Run {
    fn of(name: &str, folder: &str, round: usize, took: &[f64]) -> Self {
        let figure = |percent| percentile(took, percent).unwrap_or_default();
        Self {
            name: name.into(),
            folder: folder.into(),
            round,
            cycles_per_second: number(took.len()) / (took.iter().sum::<f64>() / 1e6),
            p50: figure(50),
            p99: figure(99),
        }
    }
}

fn tell(lines: &Lines, page: &mut Page) -> Result<(), String> {
    page.say(include_str!("../../pages/files.md"));
    let runs: Vec<Run> = lines.results()?;
    let (mut rows, mut groups) = (Vec::new(), Vec::new());
    for (folder, _) in places() {
        let mut shown = Vec::new();
        for (name, role) in SUBJECTS {
            let own = runs
                .iter()
                .filter(|run| run.name == name && run.folder == folder);
            let own: Vec<&Run> = own.collect();
            let over = |value: fn(&Run) -> f64| Spread::of(own.iter().map(|run| value(run)));
            let Some(p50) = over(|run| run.p50) else {
                continue;
            };
            rows.push([
                folder.to_owned(),
                name.to_owned(),
                spread(over(|run| run.cycles_per_second)),
                fine_spread(ratio(&own, &runs)),
                integer(Some(p50)),
                integer(over(|run| run.p99)),
            ]);
            shown.push(Bar {
                label: name.into(),
                value: p50,
                role,
            });
        }
        groups.push(Group {
            title: folder.into(),
            bars: shown,
        });
    }
    let title = "A free lock taken and given back, p50 in µs";
    page.chart("cycle", title, bars(title, None, &groups)?);
    page.say(table(COLUMNS, rows));
    Ok(())
}

fn ratio(own: &[&Run], all: &[Run]) -> Option<Spread> {
    Spread::of(own.iter().filter_map(|run| {
        let fenced = all.iter().find(|other| {
            (other.name.as_str(), &other.folder, other.round) == (FENCED, &run.folder, run.round)
        })?;
        Some(run.cycles_per_second / fenced.cycles_per_second)
    }))
}
