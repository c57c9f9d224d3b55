use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};

use leasehold_testkit::servers::until;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::processes;

/// The arguments of a call: the words of a line, or a list of arguments.
pub(crate) trait Arguments {
    fn list(&self) -> Vec<String>;
}

impl Arguments for str {
    fn list(&self) -> Vec<String> {
        self.split_whitespace().map(Self::to_owned).collect()
    }
}

impl Arguments for String {
    fn list(&self) -> Vec<String> {
        self.as_str().list()
    }
}

impl<S: AsRef<str>> Arguments for [S] {
    fn list(&self) -> Vec<String> {
        self.iter().map(|word| word.as_ref().to_owned()).collect()
    }
}

impl<S: AsRef<str>, const N: usize> Arguments for [S; N] {
    fn list(&self) -> Vec<String> {
        self[..].list()
    }
}

impl<S: AsRef<str>> Arguments for Vec<S> {
    fn list(&self) -> Vec<String> {
        self[..].list()
    }
}

/// The words of `line`, and a shell that runs `script` as the command.
pub(crate) fn sh(line: &str, script: &str) -> Vec<String> {
    let mut arguments = line.list();
    arguments.extend(["--", "sh", "-c", script].map(str::to_owned));
    arguments
}

/// A program that was started; killed if the test ends before it.
pub(crate) struct Running {
    child: Option<Child>,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Running {
    /// A program that writes its output to these files.
    pub(crate) fn new(child: Child, stdout: PathBuf, stderr: PathBuf) -> Self {
        Self {
            child: Some(child),
            stdout,
            stderr,
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.as_ref().unwrap().id().cast_signed()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        processes::signal(self.pid(), signal);
    }

    /// Waits until its stderr contains `text`. A message may begin with "waiting for 1s for lock" on a busy machine.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        until(&format!("{text:?} on stderr"), || {
            self.stderr().contains(text)
        });
    }

    /// Waits until its stdout contains `text`.
    #[track_caller]
    pub(crate) fn prints(&self, text: &str) {
        until(&format!("{text:?} on stdout"), || {
            self.stdout().contains(text)
        });
    }

    /// What it has written to stdout.
    pub(crate) fn stdout(&self) -> String {
        read(&self.stdout)
    }

    /// What it has written to stderr.
    pub(crate) fn stderr(&self) -> String {
        read(&self.stderr)
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

/// The exit code as a shell shows it: 128 + n if signal n ended the program.
#[track_caller]
pub(crate) fn shell_code(status: ExitStatus) -> i32 {
    let signal = status.signal().map(|number| 128 + number);
    status.code().or(signal).expect("an end")
}

/// A program that ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn code(&self) -> i32 {
        shell_code(self.status)
    }

    /// Asserts the exit code 0, and returns the program.
    #[track_caller]
    pub(crate) fn succeeds(self) -> Self {
        assert_eq!(self.code(), 0, "{self:?}");
        self
    }

    /// Asserts the exit code, and that stderr contains each of `parts`.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code(), code, "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in {self:?}");
        }
    }

    /// The JSON object on stdout of a program that succeeded.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code(), 0, "{self:?}");
        self.json_of_any()
    }

    /// The same, of a program with any exit code.
    #[track_caller]
    pub(crate) fn json_of_any(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The JSON objects on stderr, one in each line.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line);
        let events: Result<_, _> = self.stderr.lines().map(parse).collect();
        events.unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Asserts that the object `value` has these fields, among others.
#[track_caller]
pub(crate) fn assert_fields(value: &Value, fields: Value) {
    for (name, expected) in fields.as_object().unwrap() {
        assert_eq!(&value[name], expected, "{name} of {value}");
    }
}

/// What a file holds by now; nothing if it is missing.
pub(crate) fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
