use std::path::Path;
use std::process::Command;

use crate::processes::SecondProcess;

/// A session of `psql`, which sends one statement after the other on one connection. Several sessions are
/// several clients.
#[derive(Debug)]
pub struct PsqlSession(SecondProcess);

/// What psql prints after an answer.
const END: &str = "-- the end of the answer --";

impl PsqlSession {
    pub(in crate::servers) fn start(psql: &Path, socket: &Path, port: u16, user: &str) -> Self {
        // One stream for answers and errors. The kernel kills psql when the test is killed.
        let mut process = Command::new("setpriv");
        process
            .args(["--pdeathsig", "KILL", "sh", "-c", "exec \"$0\" \"$@\" 2>&1"])
            .arg(psql)
            .args(["--no-psqlrc", "--no-align", "--tuples-only"])
            .args(["--set", "VERBOSITY=sqlstate", "--host"])
            .arg(socket)
            .args(["--port", &port.to_string()])
            .args(["--username", user, "postgres"]);
        Self(SecondProcess::spawn(&mut process))
    }

    /// Runs `sql`, and returns the lines of the answer: rows with `|` between columns, the
    /// command's tag (`UPDATE 1`), and errors as `ERROR:  ` with their SQLSTATE.
    ///
    /// # Panics
    ///
    /// If psql has ended.
    pub fn run(&mut self, sql: &str) -> Vec<String> {
        self.send(sql);
        self.answer()
    }

    /// Sends `sql`. Its [`answer`](Self::answer) may take long.
    ///
    /// # Panics
    ///
    /// If psql has ended.
    pub fn send(&mut self, sql: &str) {
        self.0.tell(&format!("{sql}\n\\echo '{END}'"));
    }

    /// Waits for the answer to what was [sent](Self::send).
    ///
    /// # Panics
    ///
    /// If psql has ended.
    pub fn answer(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            match self.0.try_hear() {
                Some(line) if line == END => return lines,
                Some(line) => lines.push(line),
                None => panic!("psql has ended and said {lines:?}"),
            }
        }
    }
}
