//! The bug museum: each exhibit lets one known defect into a copy of the tree, and a test must turn
//! red. What the tests would not notice is not tested.

mod exhibit;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;
use crate::setup;
use crate::step::{cargo, succeed};
use crate::suite;
use crate::workspace::Workspace;
use exhibit::Exhibit;

/// Shows the exhibits whose names contain one of `names`, or all.
pub(crate) fn run(workspace: &Workspace, names: &[String]) -> Result<(), Failure> {
    check(workspace)?;
    let all = exhibits(workspace)?;
    let chosen: Vec<&Exhibit> = all
        .iter()
        .filter(|exhibit| {
            names.is_empty()
                || names
                    .iter()
                    .any(|name| exhibit.name.contains(name.as_str()))
        })
        .collect();
    if chosen.is_empty() {
        return Err(Failure::Usage(format!(
            "no exhibit has {names:?} in its name"
        )));
    }
    setup::check(workspace, &[])?;
    let copy = Copy::of(workspace)?;
    let mut unnoticed = Vec::new();
    for exhibit in &chosen {
        println!("==> {}: {}", exhibit.name, exhibit.defect);
        match copy.show(workspace, exhibit) {
            Ok(()) => println!("==> {}: noticed by {}", exhibit.name, exhibit.test),
            Err(why) => {
                println!("==> {}: NOT NOTICED: {why}", exhibit.name);
                unnoticed.push(exhibit.name.as_str());
            }
        }
    }
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
         Defects that other lock libraries have, or had, or that the model of the protocol found. Each is \
         kept as a change\nto our code, in `museum/`; `cargo xtask museum` lets one after the other into \
         a copy of the tree, and the test that is\nnamed beside it must turn red. So the tests are \
         known to bite.\n\n\
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

/// A copy of the tree, with a build folder of its own.
struct Copy {
    tree: PathBuf,
    build: PathBuf,
}

impl Copy {
    fn of(workspace: &Workspace) -> Result<Self, String> {
        let museum = workspace.target().join("museum");
        let copy = Self {
            tree: museum.join("tree"),
            build: museum.join("build"),
        };
        let files = crate::step::answer(
            Command::new("git")
                .args(["ls-files", "--cached", "--others", "--exclude-standard"])
                .current_dir(workspace.root()),
        );
        let files = files.ok_or("git does not list the files of the tree")?;
        let files: BTreeSet<&str> = files.lines().collect();
        for file in &files {
            copy.take(workspace.root(), file)?;
        }
        copy.sweep(&copy.tree, &|file| {
            files.contains(file) && workspace.root().join(file).is_file()
        })?;
        Ok(copy)
    }

    /// Removes what an earlier copy left, and the tree does not have any more.
    fn sweep(&self, folder: &Path, is_there: &dyn Fn(&str) -> bool) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.strip_prefix(&self.tree).unwrap_or(&path);
            if path.is_dir() {
                self.sweep(&path, is_there)?;
            } else if !name.to_str().is_some_and(is_there) {
                std::fs::remove_file(&path).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Copies a file if it changed, so that what was built of the others stays good.
    fn take(&self, root: &Path, file: &str) -> Result<(), String> {
        let (from, to) = (root.join(file), self.tree.join(file));
        let failed = |error: std::io::Error| format!("{file}: {error}");
        if !from.is_file() {
            // Deleted, but not yet committed.
            return Ok(());
        }
        let content = std::fs::read(&from).map_err(failed)?;
        if std::fs::read(&to).is_ok_and(|there| there == content) {
            return Ok(());
        }
        std::fs::create_dir_all(to.parent().unwrap_or(&to)).map_err(failed)?;
        std::fs::copy(&from, &to).map(|_| ()).map_err(failed)
    }

    fn show(&self, workspace: &Workspace, exhibit: &Exhibit) -> Result<(), String> {
        let path = self.tree.join(&exhibit.file);
        let failed = |error: std::io::Error| format!("{}: {error}", exhibit.file);
        let right = std::fs::read_to_string(&path).map_err(failed)?;
        std::fs::write(&path, exhibit.let_into(&right)?).map_err(failed)?;
        let outcome = self.turns_red(workspace, exhibit);
        std::fs::write(&path, right).map_err(failed)?;
        outcome
    }

    /// Builds the copy, which must succeed, and runs the test, which must not.
    fn turns_red(&self, workspace: &Workspace, exhibit: &Exhibit) -> Result<(), String> {
        let arguments: Vec<&str> = exhibit.run.split_whitespace().collect();
        succeed(self.test(workspace, &arguments).arg("--no-run"))?;
        let mut test = bounded(&self.test(workspace, &arguments));
        test.args(["--", &exhibit.test]);
        suite::equip(&mut test, workspace)?;
        let output = test.output().map_err(|error| error.to_string())?;
        if output.status.code() == Some(TIMED_OUT) {
            return Err(format!("its test did not end within {TEST_MAX} s"));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        let red = said.lines().any(|line| {
            line.starts_with("test ") && line.contains(&exhibit.test) && line.ends_with("FAILED")
        });
        match (red, output.status.success()) {
            (true, _) => Ok(()),
            (false, true) if said.contains(&exhibit.test) => Err("its test is green".into()),
            (false, _) => Err(format!("its test did not run:\n{said}")),
        }
    }

    fn test(&self, workspace: &Workspace, arguments: &[&str]) -> Command {
        let mut test = cargo(workspace, &["test", "--locked"]);
        test.args(arguments)
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.build)
            .env("CARGO_INCREMENTAL", "1");
        test
    }
}

/// The same call, which is ended if it takes too long: a test that never ends says nothing, and may
/// fill the memory.
fn bounded(call: &Command) -> Command {
    let mut bounded = Command::new("timeout");
    bounded.args(["--kill-after=5", TEST_MAX]);
    bounded.arg(call.get_program()).args(call.get_args());
    let changes = call
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    bounded.envs(changes);
    if let Some(folder) = call.get_current_dir() {
        bounded.current_dir(folder);
    }
    bounded
}

/// In seconds.
const TEST_MAX: &str = "180";

/// What `timeout` ends with if it ended the call.
const TIMED_OUT: i32 = 124;
