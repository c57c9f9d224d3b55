//! A command under a lock, from a cold start: what `leasehold run` costs compared with flock(1).

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use leasehold_testkit::servers::RedisSet;

use crate::error::Fallible;
use crate::options::Options;
use crate::report::page::Page;
use crate::report::statistics::p50_and_p99;
use crate::report::table::{Column, Row, Run, table};

/// The reference for the others.
const FLOCK: &str = "flock FILE true";

const ON_FILES: &str = "leasehold run, file store";

/// One command in one round, in milliseconds.
#[derive(Debug)]
struct Start {
    p50: f64,
    p99: f64,
}

const COLUMNS: [Column<Start>; 5] = [
    ("command", |row| format!("`{}`", row.subject())),
    ("p50 ms", |row| row.fine_spread(|seen| seen.p50)),
    ("p99 ms", |row| row.fine_spread(|seen| seen.p99)),
    ("÷ flock(1)", |row| {
        row.ratio(|run| run.subject == FLOCK, |seen| seen.p50)
    }),
    ("rounds", |row| row.rounds()),
];

pub(super) fn measure(options: &Options, page: &mut Page) -> Fallible {
    page.say(include_str!("../../pages/coldstart.md"));
    // In the folder of this program, where `cargo xtask bench` builds it.
    let program = std::env::current_exe()?.with_file_name("leasehold");
    if !program.is_file() {
        return Err(format!("{} was not built", program.display()).into());
    }
    // In memory if possible, where the locks of one machine are, so that the disk is not measured.
    let memory = Path::new("/dev/shm");
    let folder = match memory.is_dir() {
        true => tempfile::tempdir_in(memory)?,
        false => tempfile::tempdir()?,
    };
    let (servers, alone) = (RedisSet::start(5), RedisSet::start(1));
    let all = servers.urls().join(",");
    let file = folder.path().join("lock").display().to_string();
    let store = format!("file://{}", folder.path().display());
    let own = program.display().to_string();
    let alone = &alone.urls()[0];
    run(&[&own, "init", "--store", &all])?;
    let lines: [(_, &[&str]); 5] = [
        ("true", &["true"]),
        (FLOCK, &["flock", &file, "true"]),
        (
            ON_FILES,
            &[&own, "run", "--store", &store, "bench", "--", "true"],
        ),
        (
            "leasehold run, one Redis",
            &[&own, "run", "--store", alone, "bench", "--", "true"],
        ),
        (
            "leasehold run, five Redis",
            &[&own, "run", "--store", &all, "bench", "--", "true"],
        ),
    ];
    let mut runs = Vec::new();
    for round in 0..options.rounds(5) {
        let mut took = lines.map(|_| Vec::new());
        for _ in 0..options.pick(15, 60) {
            for ((_, line), took) in lines.iter().zip(&mut took) {
                let began = Instant::now();
                run(line)?;
                took.push(began.elapsed().as_secs_f64() * 1e3);
            }
        }
        for ((subject, _), took) in lines.iter().zip(took) {
            let [p50, p99] = p50_and_p99(took);
            let seen = Start { p50, p99 };
            runs.push(Run {
                subject,
                round,
                seen,
            });
        }
    }
    page.say(table(&COLUMNS, Row::by_subject(&runs)));
    let of = |name| Row::of(&runs, |run| run.subject == name)?.over(|seen| seen.p50);
    let what = "`leasehold run` on files, from start to exit";
    let millis = |value| format!("{value:.1} ms");
    page.figure(what, true, millis, of(ON_FILES), &[("flock(1)", of(FLOCK))]);
    Ok(())
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
