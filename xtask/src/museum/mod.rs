//! The bug museum: each exhibit inserts one known defect into a copy of the tree, and a test must fail. A
//! defect that no test notices shows a missing test.

mod copy;
mod exhibit;
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
use exhibit::Exhibit;
use part::Part;

/// Shows the exhibits whose names contain one of `names`, or all.
pub(crate) fn run(workspace: &Workspace, names: &[String]) -> Result<(), Failure> {
    let all = exhibits(workspace)?;
    let is_named = |exhibit: &&Exhibit| {
        let mut names = names.iter();
        names.any(|name| exhibit.name.contains(name.as_str()))
    };
    let chosen: Vec<&Exhibit> = all
        .iter()
        .filter(|exhibit| names.is_empty() || is_named(exhibit))
        .collect();
    if chosen.is_empty() {
        return Err(Failure::Usage(format!(
            "no exhibit has {names:?} in its name"
        )));
    }
    visit(workspace, &chosen)
}

/// Shows the part for the current commit.
pub(crate) fn run_part(workspace: &Workspace) -> Result<(), Failure> {
    let all = exhibits(workspace)?;
    let part = Part::of_commit(workspace);
    let chosen = part.choose(&all);
    println!("{}", part.notice(chosen.len(), all.len()));
    visit(workspace, &chosen)
}

fn visit(workspace: &Workspace, chosen: &[&Exhibit]) -> Result<(), Failure> {
    check(workspace)?;
    setup::check(workspace, &[])?;
    let unnoticed = show(workspace, chosen)?;
    println!(
        "museum: {} exhibits, {} unnoticed",
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
fn show<'a>(workspace: &Workspace, exhibits: &[&'a Exhibit]) -> Result<Vec<&'a str>, String> {
    let rooms = thread::available_parallelism().map_or(1, |cores| cores.get().min(ROOMS_MAX));
    let copies = (0..rooms.min(exhibits.len())).map(|room| Copy::of(workspace, room));
    let copies: Vec<Copy> = copies.collect::<Result<_, _>>()?;
    let waiting = Mutex::new(exhibits.iter());
    let unnoticed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for copy in &copies {
            scope.spawn(|| {
                while let Some(exhibit) = next(&waiting) {
                    println!("==> {}: {}", exhibit.name, exhibit.defect);
                    match copy.show(workspace, exhibit) {
                        Ok(()) => println!("==> {}: noticed by {}", exhibit.name, exhibit.test),
                        Err(why) => {
                            println!("==> {}: NOT NOTICED: {why}", exhibit.name);
                            unnoticed
                                .lock()
                                .unwrap_or_else(PoisonError::into_inner)
                                .push(exhibit.name.as_str());
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

/// Whether every exhibit still fits the tree, and the page the exhibits.
pub(crate) fn check(workspace: &Workspace) -> Result<(), String> {
    let all = exhibits(workspace)?;
    for exhibit in &all {
        let file = std::fs::read_to_string(workspace.root().join(&exhibit.file));
        let file = file.map_err(|error| format!("{}: {error}", exhibit.file))?;
        let fits = exhibit.let_into(&file);
        fits.map_err(|why| format!("exhibit {}: {why}", exhibit.name))?;
    }
    check_page(workspace, &all)
}

/// Writes the page of the exhibits anew.
pub(crate) fn write_page(workspace: &Workspace) -> Result<(), Failure> {
    let page = page(&exhibits(workspace)?);
    std::fs::write(page_path(workspace), page).map_err(|error| error.to_string())?;
    Ok(())
}

fn exhibits(workspace: &Workspace) -> Result<Vec<Exhibit>, String> {
    let folder = workspace.root().join("museum");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("museum: {error}"))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().map(|path| Exhibit::read(path)).collect()
}

fn page_path(workspace: &Workspace) -> PathBuf {
    workspace.root().join("docs/museum.md")
}

fn check_page(workspace: &Workspace, exhibits: &[Exhibit]) -> Result<(), String> {
    let stands = std::fs::read_to_string(page_path(workspace)).unwrap_or_default();
    if stands == page(exhibits) {
        return Ok(());
    }
    Err("docs/museum.md is not what the exhibits say: run `cargo xtask museum --page`".into())
}

fn page(exhibits: &[Exhibit]) -> String {
    let mut page = String::from(
        "# The bug museum\n\n\
         Known defects: of other lock libraries, of earlier versions of Leasehold, and of variants that \
         the model rejects.\nEach is a change to our code in `museum/`. `cargo xtask museum` applies \
         one after the other to a copy of the tree, and\nthe test that is named next to it must fail. \
         A test that still passes does not notice the defect.\n\n\
         | exhibit | the defect | seen in | breaks | noticed by |\n|---|---|---|---|---|\n",
    );
    for Exhibit {
        name,
        defect,
        seen,
        breaks,
        test,
        ..
    } in exhibits
    {
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "| `{name}` | {defect} | {seen} | {breaks} | `{test}` |"
        );
    }
    page
}
