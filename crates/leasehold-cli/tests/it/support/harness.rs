use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use leasehold_testkit::reset_ignored_signals;
use leasehold_testkit::servers::until;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;

use crate::support::processes;

/// The folder of a test: for locks, for files, and as the user's home.
pub(crate) struct Sandbox {
    dir: TempDir,
    started: AtomicU32,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        reset_ignored_signals();
        Self {
            dir: TempDir::with_prefix("leasehold-cli-").unwrap(),
            started: AtomicU32::new(0),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The address of the sandbox's file store.
    pub(crate) fn store(&self) -> String {
        format!("file://{}", self.path("locks").display())
    }

    /// The program, with only the sandbox's variables in its environment.
    pub(crate) fn leasehold(&self) -> Command {
        let mut command = self.without_store();
        command.env("LEASEHOLD_STORE", self.store());
        command
    }

    /// The same, with no store configured.
    pub(crate) fn without_store(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        self.furnish(&mut command);
        command
    }

    /// Gives `command` the sandbox's environment and no stdin.
    pub(crate) fn furnish(&self, command: &mut Command) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.path("home"))
            .env("BOX", self.dir.path())
            .env("LEASEHOLD", PROGRAM)
            .current_dir(self.dir.path())
            .stdin(Stdio::null());
    }

    /// Runs `leasehold` with `args` to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Ended {
        self.start(args).wait()
    }

    /// Starts `leasehold` with `args`.
    pub(crate) fn start<S: AsRef<OsStr>>(&self, args: &[S]) -> Running {
        let mut command = self.leasehold();
        command.args(args);
        self.spawn(command)
    }

    /// Starts `leasehold run` with `args` and a command that runs until [`let_go`](Self::let_go). Returns once the
    /// command has written its process id to the file `name`.
    pub(crate) fn hold(&self, args: &[&str], name: &str) -> Running {
        self.hold_in(&self.store(), args, name)
    }

    /// The same in another store.
    pub(crate) fn hold_in(&self, store: &str, args: &[&str], name: &str) -> Running {
        let script =
            format!("echo $$ > {name}; while [ ! -e go ]; do sleep 0.02; done; echo done > first");
        let mut command = self.without_store();
        command.env("LEASEHOLD_STORE", store).arg("run").args(args);
        command.args(["--", "sh", "-c", &script]);
        let holder = self.spawn(command);
        self.pid_in(name);
        holder
    }

    pub(crate) fn let_go(&self) {
        fs::write(self.path("go"), "").unwrap();
    }

    /// Starts `command` with its output in files of the sandbox.
    pub(crate) fn spawn(&self, command: Command) -> Running {
        self.spawn_named(command).0
    }

    /// The same, with the name of the file that has its stdout.
    pub(crate) fn spawn_named(&self, mut command: Command) -> (Running, String) {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let name = format!("stdout-{number}");
        let stdout = self.path(&name);
        let stderr = self.path(&format!("stderr-{number}"));
        let child = command
            .stdout(File::create(&stdout).unwrap())
            .stderr(File::create(&stderr).unwrap())
            .spawn()
            .unwrap();
        let running = Running {
            child: Some(child),
            stdout,
            stderr,
        };
        (running, name)
    }

    /// Waits until the file `name` holds a whole line, and returns it.
    #[track_caller]
    pub(crate) fn line_in(&self, name: &str) -> String {
        let path = self.path(name);
        let mut text = String::new();
        until(&format!("a line in {name}"), || {
            text = fs::read_to_string(&path).unwrap_or_default();
            text.ends_with('\n')
        });
        text.trim_end().to_owned()
    }

    /// The lines that the file `name` holds by now.
    pub(crate) fn lines_in(&self, name: &str) -> Vec<String> {
        read(&self.path(name)).lines().map(Into::into).collect()
    }

    /// What the file `name` holds by now, without the end of its last line.
    pub(crate) fn line_in_if_any(&self, name: &str) -> String {
        read(&self.path(name)).trim_end().to_owned()
    }

    /// Waits until a process wrote its id to the file `name`, and returns it.
    #[track_caller]
    pub(crate) fn pid_in(&self, name: &str) -> i32 {
        self.line_in(name).parse().unwrap()
    }

    /// Makes a gate: a command that reads a line from the file `name` waits there until the gate is
    /// opened. Unlike a loop around `sleep` it starts no processes, so it can be stopped at any time. A
    /// shell that is starting a process stops only when that process runs (vfork).
    pub(crate) fn gate(&self, name: &str) {
        mkfifo(&self.path(name), Mode::S_IRWXU).unwrap();
    }

    /// Opens the gate for a command that waits there now or later.
    pub(crate) fn open_gate(&self, name: &str) {
        fs::write(self.path(name), "\n").unwrap();
    }

    /// Whether `lock` is free according to `status`.
    pub(crate) fn is_free(&self, lock: &str) -> bool {
        let status = self.run(&["status", lock]);
        assert_eq!(status.code(), 0, "{}", status.stderr);
        status.stdout == format!("{lock}: free\n")
    }
}

/// A program that was started; killed if the test ends before it.
pub(crate) struct Running {
    child: Option<Child>,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Running {
    pub(crate) fn pid(&self) -> i32 {
        self.child.as_ref().unwrap().id().cast_signed()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        processes::signal(self.pid(), signal);
    }

    /// Waits until its stderr contains `text`.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        until(&format!("{text:?} on stderr"), || {
            read(&self.stderr).contains(text)
        });
    }

    #[track_caller]
    pub(crate) fn wait(mut self) -> Ended {
        let mut child = self.child.take().unwrap();
        let mut status = None;
        until("the end of the program", || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        Ended {
            status: status.unwrap(),
            stdout: read(&self.stdout),
            stderr: read(&self.stderr),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A program that ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    #[track_caller]
    pub(crate) fn code(&self) -> i32 {
        match self.status.code() {
            Some(code) => code,
            None => panic!("ended by a signal: {self:?}"),
        }
    }

    /// Asserts the exit code, and that stderr contains each of `parts`.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code(), code, "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in {self:?}");
        }
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_leasehold");

/// A command that notes each INT and USR1 it receives in `got`, and ends on USR2.
pub(crate) const COUNTER: &str = "
    trap 'echo INT >> got' INT
    trap 'echo USR1 >> got' USR1
    sleep 1000 & sleep=$!
    trap 'kill $sleep; exit 0' USR2
    echo $$ > pid
    while :; do wait $sleep; done";
