//! The statement for MySQL and MariaDB.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use leasehold_testkit::servers::until;
use nix::unistd::geteuid;
use tempfile::TempDir;

use crate::{blocks, page};

/// A server on a socket in a folder of its own.
struct MariaDb {
    process: Child,
    folder: TempDir,
}

impl MariaDb {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = format!("--datadir={}", folder.path().join("data").display());
        let made = server("mariadb-install-db")
            .args([&data, "--auth-root-authentication-method=normal"])
            .output()
            .expect("mariadb-install-db, which `cargo xtask setup` installs");
        assert!(made.status.success(), "{made:?}");
        let socket = format!("--socket={}", socket(&folder).display());
        let process = server("mariadbd")
            .args([&data, &socket, "--skip-networking"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { process, folder };
        until("the server answers", || {
            server.client("SELECT 1").status.success()
        });
        server
    }

    /// Returns what the statements print.
    fn run(&self, sql: &str) -> String {
        let output = self.client(sql);
        assert!(output.status.success(), "{sql}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn client(&self, sql: &str) -> std::process::Output {
        Command::new("mariadb")
            .args([
                "--no-defaults",
                "--user=root",
                "--batch",
                "--skip-column-names",
            ])
            .arg(format!("--socket={}", socket(&self.folder).display()))
            .args(["--execute", sql])
            .output()
            .expect("mariadb, which `cargo xtask setup` installs")
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn socket(folder: &TempDir) -> PathBuf {
    folder.path().join("socket")
}

/// A program of the server. It refuses to run as root unless an option names that user.
fn server(program: &str) -> Command {
    let mut command = Command::new(program);
    command.arg("--no-defaults");
    if geteuid().is_root() {
        command.arg("--user=root");
    }
    command
}

#[test]
fn mariadb_refuses_late_writes() {
    let page = page("fencing.md");
    let update = blocks(&page, "sql")[0];
    let server = MariaDb::start();
    server.run(
        "CREATE DATABASE app;
         CREATE TABLE app.invoice (id bigint PRIMARY KEY, total bigint, fence bigint NOT NULL DEFAULT 0);
         INSERT INTO app.invoice (id, total) VALUES (7, 0);",
    );
    let write = |total: &str, fence: &str| {
        let update = update.replace(":total", total).replace(":fence", fence);
        let update = update.replace(":id", "7");
        server.run(&format!("USE app; {update}; SELECT ROW_COUNT()"))
    };
    assert_eq!(write("10", "5"), "1\n");
    assert_eq!(write("20", "7"), "1\n");
    assert_eq!(write("99", "5"), "0\n", "it comes too late");
    assert_eq!(server.run("SELECT total FROM app.invoice"), "20\n");
    assert_eq!(
        write("20", "7"),
        "0\n",
        "it changes nothing, as the page says"
    );
}
