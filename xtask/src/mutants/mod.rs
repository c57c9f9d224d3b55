//! Mutation tests: each mutant inserts one known defect into a copy of the tree, and a test must fail. A
//! defect that no test notices shows a missing test.

mod copy;
mod mutant;
mod part;
mod third_party;

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::Failure;
use crate::setup;
use crate::workspace::Workspace;
use copy::Copy;
use mutant::Mutant;
use part::Part;

/// Shows the mutants whose names contain one of `names`, or all.
pub(crate) fn run(workspace: &Workspace, names: &[String]) -> Result<(), Failure> {
    let all = mutants(workspace)?;
    let is_named = |mutant: &&Mutant| {
        let mut names = names.iter();
        names.any(|name| mutant.name.contains(name.as_str()))
    };
    let chosen: Vec<&Mutant> = all
        .iter()
        .filter(|mutant| names.is_empty() || is_named(mutant))
        .collect();
    if chosen.is_empty() {
        return Err(Failure::Usage(format!(
            "no mutant has {names:?} in its name"
        )));
    }
    visit(workspace, &chosen)
}

/// Shows the part for the current commit.
pub(crate) fn run_part(workspace: &Workspace) -> Result<(), Failure> {
    let all = mutants(workspace)?;
    let part = Part::of_commit(workspace);
    let chosen = part.choose(&all);
    println!("{}", part.notice(chosen.len(), all.len()));
    visit(workspace, &chosen)
}

fn visit(workspace: &Workspace, chosen: &[&Mutant]) -> Result<(), Failure> {
    check(workspace)?;
    setup::check(workspace, &[])?;
    let unnoticed = show(workspace, chosen)?;
    println!(
        "mutants: {} tried, {} unnoticed",
        chosen.len(),
        unnoticed.len()
    );
    if unnoticed.is_empty() {
        Ok(())
    } else {
        Err(Failure::Work(format!(
            "not noticed: {}",
            unnoticed.join(", ")
        )))
    }
}

/// The names of those that no test noticed. Several are shown at a time, each in a copy that no other is
/// in: to build one keeps little more than one core busy.
fn show<'a>(workspace: &Workspace, mutants: &[&'a Mutant]) -> Result<Vec<&'a str>, String> {
    let rooms = thread::available_parallelism().map_or(1, |cores| cores.get().min(ROOMS_MAX));
    let copies = (0..rooms.min(mutants.len())).map(|room| Copy::of(workspace, room));
    let copies: Vec<Copy> = copies.collect::<Result<_, _>>()?;
    let waiting = Mutex::new(mutants.iter());
    let unnoticed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for copy in &copies {
            scope.spawn(|| {
                while let Some(mutant) = next(&waiting) {
                    println!("==> {}: {}", mutant.name, mutant.defect);
                    match copy.show(workspace, mutant) {
                        Ok(()) => println!("==> {}: noticed by {}", mutant.name, mutant.test),
                        Err(why) => {
                            println!("==> {}: NOT NOTICED: {why}", mutant.name);
                            unnoticed
                                .lock()
                                .unwrap_or_else(PoisonError::into_inner)
                                .push(mutant.name.as_str());
                        }
                    }
                }
            });
        }
    });
    Ok(unnoticed
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner))
}

fn next<T>(waiting: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    waiting
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .next()
}

const ROOMS_MAX: usize = 4;

/// Whether every mutant still fits the tree, and the page the mutants.
pub(crate) fn check(workspace: &Workspace) -> Result<(), String> {
    let all = mutants(workspace)?;
    for mutant in &all {
        let file = std::fs::read_to_string(workspace.root().join(&mutant.file));
        let file = file.map_err(|error| format!("{}: {error}", mutant.file))?;
        let fits = mutant.let_into(&file);
        fits.map_err(|why| format!("mutant {}: {why}", mutant.name))?;
    }
    check_page(workspace, &all)
}

/// Writes the page of the mutants anew.
pub(crate) fn write_page(workspace: &Workspace) -> Result<(), Failure> {
    let page = page(&mutants(workspace)?);
    std::fs::write(page_path(workspace), page).map_err(|error| error.to_string())?;
    Ok(())
}

fn mutants(workspace: &Workspace) -> Result<Vec<Mutant>, String> {
    let folder = workspace.root().join("mutants");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("mutants: {error}"))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().map(|path| Mutant::read(path)).collect()
}

fn page_path(workspace: &Workspace) -> PathBuf {
    workspace.root().join("docs/mutants.md")
}

fn check_page(workspace: &Workspace, mutants: &[Mutant]) -> Result<(), String> {
    let stands = std::fs::read_to_string(page_path(workspace)).unwrap_or_default();
    if stands == page(mutants) {
        return Ok(());
    }
    Err("docs/mutants.md is not what the mutants say: run `cargo xtask mutants --page`".into())
}

fn page(mutants: &[Mutant]) -> String {
    let mut page = String::from(
        "# Mutants\n\n\
         Known defects: of other lock libraries, of earlier versions of Leasehold, and of variants that \
         the model rejects.\nEach is a change to our code in `mutants/`. `cargo xtask mutants` applies \
         one after the other to a copy of the tree, and\nthe test that is named next to it must fail. \
         A test that still passes does not notice the defect.\n\n\
         | mutant | the defect | seen in | breaks | noticed by |\n|---|---|---|---|---|\n",
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
