use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::servers::PostgresServer;
use crate::servers::ports::free_port;
use crate::servers::postgres::server::Unprivileged;
use crate::servers::server_process::{Ready, ServerProcess, directory, folder_of, path_folders};

/// A PgBouncer in front of a [`PostgresServer`]: a pooler of its connections. Dropping it stops it.
#[derive(Debug)]
pub struct PgBouncer {
    _process: ServerProcess,
    port: u16,
}

impl PgBouncer {
    /// Starts one with this `pool_mode`, and with further lines of configuration.
    ///
    /// # Panics
    ///
    /// If it cannot be started. The message says what to install, or shows its output.
    pub fn start(server: &PostgresServer, pool_mode: &str, further: &str) -> Self {
        let program = program().unwrap_or_else(|error| panic!("{error}"));
        let dir = directory("pgbouncer").expect("a directory");
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
        let libraries = libraries_of(&program).into_iter();
        let ready = Ready::Writes("process up");
        let mut process = ServerProcess::new("pgbouncer", command, ready, dir);
        process.environment = libraries
            .map(|folder| ("LD_LIBRARY_PATH", folder))
            .collect();
        process.start().unwrap_or_else(|error| panic!("{error}"));
        Self {
            _process: process,
            port,
        }
    }

    /// Returns the address for a client that logs in as the superuser of the server.
    pub fn url(&self) -> String {
        PostgresServer::url_at(self.port)
    }
}

fn program() -> io::Result<PathBuf> {
    let name = "pgbouncer";
    folder_of(&[name], path_folders())?
        .join(name)
        .canonicalize()
}

/// The folder with the libraries that were unpacked next to an unpacked program.
fn libraries_of(program: &Path) -> Option<PathBuf> {
    let root = program.parent()?.parent()?;
    let folders = fs::read_dir(root.join("lib")).into_iter().flatten();
    let mut folders = folders.flatten().map(|entry| entry.path());
    folders.find(|folder| folder.to_string_lossy().ends_with("-linux-gnu"))
}
