use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use leasehold_testkit::reset_ignored_signals;
use leasehold_testkit::servers::until;
use tempfile::TempDir;

use crate::shell::Shell;

/// The environment of a scene: its own folder, and the store that all shells use.
#[derive(Debug)]
pub(crate) struct Fixture {
    folder: TempDir,
    store: String,
}

impl Fixture {
    pub(crate) fn new(store: String) -> Self {
        reset_ignored_signals();
        let folder = TempDir::with_prefix("leasehold-captures-").unwrap();
        let fixture = Self { folder, store };
        let script = fixture.path("deploy.sh");
        fs::write(&script, DEPLOY).unwrap();
        fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
        fixture
    }

    /// Opens a shell whose `deploy.sh` runs until [`let_deploy`](Self::let_deploy) is called with `name`.
    pub(crate) fn shell(&self, name: &str, size: (u16, u16)) -> Shell {
        let mut bash = Command::new("setsid");
        bash.args(["--ctty", "--wait", "bash", "--norc", "--noprofile"])
            .args(["--noediting", "-i"]);
        self.furnish(&mut bash);
        Shell::open(bash.env("GATE", self.path(name)), size)
    }

    pub(crate) fn let_deploy(&self, name: &str) {
        fs::write(self.path(name), "").unwrap();
    }

    /// Runs `leasehold` with `arguments` behind the scenes, and returns its output. It must succeed.
    pub(crate) fn prepare(&self, arguments: &[&str]) -> String {
        let mut leasehold = Command::new(PROGRAM);
        self.furnish(&mut leasehold);
        let ended = leasehold.args(arguments).output().unwrap();
        assert!(ended.status.success(), "{arguments:?}: {ended:?}");
        String::from_utf8(ended.stdout).unwrap()
    }

    /// Runs `leasehold` with `arguments` behind the scenes until its output has `text` exactly `times` times.
    #[track_caller]
    pub(crate) fn until_told(&self, arguments: &[&str], (text, times): (&str, usize)) {
        until(&format!("{text:?} of leasehold {arguments:?}"), || {
            self.prepare(arguments).matches(text).count() == times
        });
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces the environment of `command`. Only `PATH` keeps the folders of this machine.
    fn furnish(&self, command: &mut Command) {
        let folder = PathBuf::from(PROGRAM).parent().map(PathBuf::from);
        let others = std::env::var_os("PATH").unwrap_or_default();
        let path = folder.into_iter().chain(std::env::split_paths(&others));
        command
            .env_clear()
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("HOME", self.folder.path())
            .env("LEASEHOLD_STORE", &self.store)
            .current_dir(self.folder.path());
    }
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_leasehold");

const DEPLOY: &str = "#!/bin/sh
echo deploying…
while [ ! -e \"$GATE\" ]; do sleep 0.02; done
echo done
";
