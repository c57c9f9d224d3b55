//! Mutation tests: each mutant inserts one known defect into a copy of the tree, and a test must fail. A
//! defect that no test notices shows a missing test.

mod copy;
mod generated;
mod mutant;
mod part;
mod third_party;

use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::Failure;
use crate::setup;
use crate::step::answer;
use crate::workspace::Workspace;
use copy::Copy;
use mutant::Mutant;
use part::Part;

/// How many mutants are tried at once, each in a copy of its own.
const COPIES_MAX: usize = 4;

/// Tries all mutants, or those that `arguments` choose.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["--generated", part @ ..] = words.as_slice() {
        return Ok(generated::run(workspace, part.first().copied())?);
    }
    let all = read(workspace)?;
    let chosen: Vec<&Mutant> = match words.as_slice() {
        ["--page"] => {
            let written = std::fs::write(page_path(workspace), page(&all));
            return Ok(written.map_err(|error| error.to_string())?);
        }
        ["--part"] => {
            let part = Part::of_commit(workspace);
            let chosen = part.choose(&all);
            println!("{}", part.notice(chosen.len(), all.len()));
            chosen
        }
        [] => all.iter().collect(),
        names => {
            let is_named = |mutant: &&Mutant| names.iter().any(|name| mutant.name.contains(name));
            all.iter().filter(is_named).collect()
        }
    };
    if chosen.is_empty() {
        return Err(Failure::Usage(format!(
            "no mutant has {words:?} in its name"
        )));
    }
    check(workspace)?;
    setup::check(workspace, &[])?;
    let missed = try_out(workspace, &chosen)?;
    println!(
        "mutants: {} tried, {} not noticed",
        chosen.len(),
        missed.len()
    );
    if missed.is_empty() {
        Ok(())
    } else {
        Err(Failure::Work(format!("not noticed: {}", missed.join(", "))))
    }
}

/// Returns the names of the mutants that no test noticed.
fn try_out<'a>(workspace: &Workspace, mutants: &[&'a Mutant]) -> Result<Vec<&'a str>, String> {
    // A build keeps little more than one core busy.
    let count = thread::available_parallelism().map_or(1, |cores| cores.get().min(COPIES_MAX));
    let copies = (0..count.min(mutants.len())).map(|number| Copy::of(workspace, number));
    let copies: Vec<Copy> = copies.collect::<Result<_, _>>()?;
    let waiting = Mutex::new(mutants.iter());
    let next = || {
        waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next()
    };
    let missed = thread::scope(|scope| {
        let threads: Vec<_> = copies
            .iter()
            .map(|copy| {
                scope.spawn(|| {
                    let mut missed = Vec::new();
                    while let Some(mutant) = next() {
                        println!("==> {}: {}", mutant.name, mutant.defect);
                        match copy.try_out(workspace, mutant) {
                            Ok(()) => println!("==> {}: noticed by {}", mutant.name, mutant.test),
                            Err(why) => {
                                println!("==> {}: NOT NOTICED: {why}", mutant.name);
                                missed.push(mutant.name.as_str());
                            }
                        }
                    }
                    missed
                })
            })
            .collect();
        let results = threads.into_iter().map(thread::ScopedJoinHandle::join);
        results.collect::<Result<Vec<_>, _>>()
    });
    let missed = missed.map_err(|_| "a thread panicked")?;
    Ok(missed.concat())
}

/// Checks that each mutant still fits the tree, and the page the mutants.
pub(crate) fn check(workspace: &Workspace) -> Result<(), String> {
    let all = read(workspace)?;
    for mutant in &all {
        let file = std::fs::read_to_string(workspace.root().join(&mutant.file));
        let file = file.map_err(|error| format!("{}: {error}", mutant.file))?;
        let fits = mutant.apply(&file);
        fits.map_err(|why| format!("mutant {}: {why}", mutant.name))?;
    }
    if std::fs::read_to_string(page_path(workspace)).unwrap_or_default() == page(&all) {
        return Ok(());
    }
    Err("docs/mutants.md is out of date: run `cargo xtask mutants --page`".into())
}

fn read(workspace: &Workspace) -> Result<Vec<Mutant>, String> {
    let folder = workspace.root().join("mutants");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("mutants: {error}"))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().map(|path| Mutant::read(path)).collect()
}

/// Returns the number of commits, so that consecutive commits try different parts; 0 without git.
fn commits(workspace: &Workspace) -> usize {
    let count = git(workspace, "rev-list --count HEAD");
    count
        .and_then(|count| count.parse().ok())
        .unwrap_or_default()
}

fn git(workspace: &Workspace, words: &str) -> Option<String> {
    let mut git = Command::new("git");
    answer(git.args(words.split(' ')).current_dir(workspace.root()))
}

fn page_path(workspace: &Workspace) -> PathBuf {
    workspace.root().join("docs/mutants.md")
}

fn page(mutants: &[Mutant]) -> String {
    let mut page = String::from(
        "# Mutants\n\n\
         Known defects of other lock libraries, of earlier versions of Leasehold, and of variants that the \
         model rejects.\nEach is a change to the code, in `mutants/`. `cargo xtask mutants` applies one after \
         the other to a copy of the tree, and\nthe named test must fail. If it passes, it does not notice the \
         defect.\n\n\
         | mutant | defect | seen in | breaks | noticed by |\n|---|---|---|---|---|\n",
    );
    for Mutant {
        name,
        defect,
        seen,
        breaks,
        test,
        ..
    } in mutants
    {
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "| `{name}` | {defect} | {seen} | {breaks} | `{test}` |"
        );
    }
    page
}
