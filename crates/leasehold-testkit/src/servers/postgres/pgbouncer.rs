use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::servers::PostgresServer;
use crate::servers::ports::free_port;
use crate::servers::postgres::server::Unprivileged;
use crate::servers::server_process::ServerProcess;

/// A PgBouncer in front of a [`PostgresServer`]: a pooler of its connections. Dropping it stops it.
#[derive(Debug)]
pub struct PgBouncer {
    _process: ServerProcess,
    port: u16,
    _dir: TempDir,
}

const INSTALL: &str = "PgBouncer is not here, and this test needs a real one: run `cargo xtask setup`, which unpacks it \
     where it may and else says how";

impl PgBouncer {
    /// Starts one with this `pool_mode`, and with further lines of configuration.
    ///
    /// # Panics
    ///
    /// If it cannot be started. The message says what to install, or shows its output.
    pub fn start(server: &PostgresServer, pool_mode: &str, further: &str) -> Self {
        let program = program().unwrap_or_else(|| panic!("{INSTALL}"));
        let dir = tempfile::Builder::new()
            .prefix("leasehold-pgbouncer-")
            .tempdir()
            .expect("a directory");
        let unprivileged = Unprivileged::of(dir.path());
        let file = |name: &str| dir.path().join(name);
        let (port, password) = (free_port(), PostgresServer::PASSWORD);
        let users = file("users");
        fs::write(&users, format!("\"tester\" \"{password}\"\n")).expect("a file");
        let configuration = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = plain\nauth_file = {}\npool_mode = {pool_mode}\n{further}\n",
            server.port(),
            users.display()
        );
        fs::write(file("pgbouncer.ini"), configuration).expect("a file");
        let mut command = unprivileged.command(&program);
        command.push(file("pgbouncer.ini").display().to_string());
        let libraries = libraries_of(&program);
        let environment: Vec<(&str, &Path)> = libraries
            .iter()
            .map(|folder| ("LD_LIBRARY_PATH", folder.as_path()))
            .collect();
        let log = file("pgbouncer.log");
        let process = ServerProcess::start("pgbouncer", &command, &environment, log);
        let mut process = process.expect("setpriv");
        let started = process.await_ready(|written| written.contains("process up"));
        started.unwrap_or_else(|error| panic!("{error}"));
        Self {
            _process: process,
            port,
            _dir: dir,
        }
    }

    /// Returns the address for a client that logs in as the superuser of the server.
    pub fn url(&self) -> String {
        PostgresServer::url_at(self.port)
    }
}

fn program() -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "where a user's programs are")]
    let path: OsString = std::env::var_os("PATH").unwrap_or_default();
    let files = std::env::split_paths(&path).map(|folder| folder.join("pgbouncer"));
    files
        .into_iter()
        .find(|file| file.exists())
        .and_then(|file| file.canonicalize().ok())
}

/// The folder with the libraries that were unpacked next to an unpacked program.
fn libraries_of(program: &Path) -> Option<PathBuf> {
    let root = program.parent()?.parent()?;
    let folders = fs::read_dir(root.join("lib")).into_iter().flatten();
    let mut folders = folders.flatten().map(|entry| entry.path());
    folders.find(|folder| folder.to_string_lossy().ends_with("-linux-gnu"))
}
