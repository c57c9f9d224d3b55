//! The file store compared with flock(2): a free lock, acquired and released again and again.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold::blocking::Client;
use leasehold_file::FileStore;
use serde::{Deserialize, Serialize};

use crate::error::{Fallible, failed};
use crate::measure::results::{Lines, Results};
use crate::measure::subject::Role;
use crate::options::Options;
use crate::report::charts::{Bar, Group};
use crate::report::figures::number;
use crate::report::page::{Page, SampleColumn, comparison, fine_spread};
use crate::report::statistics::{Sample, p50_and_p99};
use crate::sections::blocking::{Cycle, cycle_of, repeat};
use crate::sections::turns::rotated;

/// The reference for the others: a fence as durable as ours, and nothing else.
const FENCED: &str = "flock(2) and a synced number";

const SUBJECTS: [(&str, Role); 4] = [
    ("leasehold", Role::Ours),
    (FENCED, Role::Bound),
    ("flock(2), file opened each time", Role::Bound),
    ("flock(2), file kept open", Role::Bound),
];

const COLUMNS: [SampleColumn<Run>; 6] = [
    ("folder", |of| of.first().folder.clone()),
    ("subject", |of| of.first().name.clone()),
    ("cycles/s", |of| of.spread(|run| run.cycles_per_second)),
    ("÷ flock(2) and a synced number", |of| {
        let reference = |run: &Run, other: &Run| {
            (other.name.as_str(), &other.folder, other.round) == (FENCED, &run.folder, run.round)
        };
        fine_spread(of.ratio(reference, |run| run.cycles_per_second))
    }),
    ("p50 µs", |of| of.integer(|run| run.p50)),
    ("p99 µs", |of| of.integer(|run| run.p99)),
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

pub(super) fn measure(options: &Options, results: &mut Results) -> Fallible {
    for round in 0..options.rounds(1, 5) {
        for (kind, place) in places() {
            let folder = tempfile::tempdir_in(&place).map_err(|error| failed(&place, &error))?;
            let wanted = rotated(&SUBJECTS, round).filter(|(name, _)| options.wants(name));
            for (name, _) in wanted {
                let mut cycle = cycle(name, folder.path())?;
                cycle()?;
                let took = repeat(&mut cycle, Duration::from_millis(options.pick(300, 1000)))?;
                let cycles_per_second = number(took.len()) / (took.iter().sum::<f64>() / 1e6);
                let [p50, p99] = p50_and_p99(took);
                results.keep(&Run {
                    name: (*name).into(),
                    folder: kind.into(),
                    round: results.round(round),
                    cycles_per_second,
                    p50,
                    p99,
                })?;
            }
        }
    }
    Ok(())
}

/// The folders for the locks: one on a disk, and one in memory like `/run/lock`.
fn places() -> Vec<(&'static str, PathBuf)> {
    let disk = ("temporary files", std::env::temp_dir());
    let memory = memory().map(|folder| ("memory", folder));
    [Some(disk), memory].into_iter().flatten().collect()
}

/// A folder in memory, if there is one.
pub(super) fn memory() -> Option<PathBuf> {
    Some(PathBuf::from("/dev/shm")).filter(|folder| folder.is_dir())
}

fn cycle(name: &str, folder: &Path) -> Fallible<Cycle> {
    if name == "leasehold" {
        let store = FileStore::open(folder.join("store"))?;
        return Ok(cycle_of(Client::new(store).lock("free")));
    }
    let path = folder.join("flock");
    let mut file = open(&path)?;
    Ok(match name {
        FENCED => Box::new(move || {
            file.lock()?;
            file.rewind()?;
            file.write_all(&[7; 64])?;
            file.sync_data()?;
            Ok(file.unlock()?)
        }),
        "flock(2), file kept open" => Box::new(move || {
            file.lock()?;
            Ok(file.unlock()?)
        }),
        _ => Box::new(move || Ok(open(&path)?.lock()?)),
    })
}

fn open(path: &Path) -> Fallible<File> {
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(false);
    Ok(options.open(path).map_err(|error| failed(path, &error))?)
}

pub(super) fn write_page(lines: &Lines, page: &mut Page) -> Fallible {
    page.title("The file store");
    page.say(include_str!("../../pages/files.md"));
    let runs: Vec<Run> = lines.results()?;
    let (mut rows, mut groups) = (Vec::new(), Vec::new());
    for (folder, _) in places() {
        let mut bars = Vec::new();
        for (name, role) in SUBJECTS {
            let is_own = |run: &Run| run.name == name && run.folder == folder;
            if let Some(sample) = Sample::of(&runs, is_own) {
                bars.extend(Bar::of(name, role, sample.over(|run| run.p50)));
                rows.push(sample);
            }
        }
        groups.push(Group {
            title: folder.into(),
            bars,
        });
    }
    let title = "A free lock taken and given back, p50 in µs";
    page.bars("cycle", title, None, &groups)?;
    page.say(comparison(&COLUMNS, rows));
    Ok(())
}
