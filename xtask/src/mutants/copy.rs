use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::git;
use super::mutant::Mutant;
use super::third_party;
use crate::step::{cargo, succeed};
use crate::suite;
use crate::workspace::Workspace;

/// A copy of the tree, with a build folder of its own.
pub(super) struct Copy {
    tree: PathBuf,
    build: PathBuf,
}

impl Copy {
    pub(super) fn of(workspace: &Workspace, number: usize) -> Result<Self, String> {
        let folder = workspace.target().join("mutants").join(number.to_string());
        let copy = Self {
            tree: folder.join("tree"),
            build: folder.join("build"),
        };
        third_party::lend(workspace, &copy.build)?;
        let files = git(workspace, "ls-files --cached --others --exclude-standard")
            .ok_or("git does not list the files of the tree")?;
        let files: BTreeSet<&str> = files.lines().collect();
        for file in &files {
            copy.take(workspace.root(), file)?;
        }
        copy.sweep(&copy.tree, &|file| {
            files.contains(file) && workspace.root().join(file).is_file()
        })?;
        Ok(copy)
    }

    /// Removes files of an earlier copy that are no longer in the tree.
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

    /// Copies a file if it changed, so that cargo does not rebuild the others.
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

    /// Inserts the defect, checks that its test fails, and removes the defect again.
    pub(super) fn try_out(&self, workspace: &Workspace, mutant: &Mutant) -> Result<(), String> {
        let path = self.tree.join(&mutant.file);
        let failed = |error: std::io::Error| format!("{}: {error}", mutant.file);
        let right = std::fs::read_to_string(&path).map_err(failed)?;
        std::fs::write(&path, mutant.apply(&right)?).map_err(failed)?;
        let outcome = self.is_noticed(workspace, mutant);
        std::fs::write(&path, right).map_err(failed)?;
        outcome
    }

    /// Builds the copy, which must succeed, and runs the test, which must not.
    fn is_noticed(&self, workspace: &Workspace, mutant: &Mutant) -> Result<(), String> {
        let arguments: Vec<&str> = mutant.run.split_whitespace().collect();
        succeed(self.test(workspace, &arguments).arg("--no-run"))?;
        let mut test = self.test(workspace, &arguments);
        let mut test = bounded(test.args(["--", &mutant.test]), TEST_MAX);
        suite::equip(&mut test, workspace)?;
        let output = test.output().map_err(|error| error.to_string())?;
        if output.status.code() == Some(TIMED_OUT) {
            return Err(format!("its test did not end within {TEST_MAX} s"));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        let red = said.lines().any(|line| {
            line.starts_with("test ") && line.contains(&mutant.test) && line.ends_with("FAILED")
        });
        match (red, output.status.success()) {
            (true, _) => Ok(()),
            (false, true) if said.contains(&mutant.test) => Err("its test is green".into()),
            (false, _) => Err(format!("its test did not run:\n{said}")),
        }
    }

    fn test(&self, workspace: &Workspace, arguments: &[&str]) -> Command {
        let mut test = self.cargo(workspace, "test --locked");
        test.args(QUICKLY_BUILT).args(arguments);
        test
    }

    /// Returns a call of cargo in the copy.
    pub(super) fn cargo(&self, workspace: &Workspace, words: &str) -> Command {
        let mut cargo = cargo(workspace, words);
        cargo
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.build)
            .env("CARGO_INCREMENTAL", "1");
        cargo
    }
}

/// Less optimization: the copy is built again and again to run one test, not a thousand simulations.
const QUICKLY_BUILT: [&str; 4] = [
    "--config=profile.dev.package.leasehold.opt-level=0",
    "--config=profile.dev.package.leasehold-testkit.opt-level=0",
    "--config=profile.dev.package.leasehold-quorum.opt-level=0",
    "--config=profile.dev.package.leasehold-redis.opt-level=0",
];

/// Returns the same call with a time limit: a test that never ends reports nothing, and may fill the
/// memory.
pub(super) fn bounded(call: &Command, seconds: &str) -> Command {
    let mut bounded = Command::new("timeout");
    bounded.args(["--signal=INT", "--kill-after=20", seconds]);
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

/// The exit code of `timeout` if it ended the call.
pub(super) const TIMED_OUT: i32 = 124;
