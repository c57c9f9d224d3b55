use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, chown, geteuid};
use tempfile::TempDir;

use super::child::spawn_bound;
use super::{PsqlSession, until};

/// A real PostgreSQL server on a socket in a directory of its own. Dropping it stops the server. The data
/// is not durable: the server does not wait for the disk.
///
/// PostgreSQL refuses to run as root. If this process is root, the server runs as the user `nobody`.
#[derive(Debug)]
pub struct PostgresServer {
    process: Child,
    programs: PathBuf,
    dir: TempDir,
}

/// The superuser as which the tests log in.
const USER: &str = "tester";

const INSTALL: &str = "PostgreSQL's server is not installed, and this test needs a real one: run \
     `cargo xtask test`, which installs it where it may and else says how";

impl PostgresServer {
    /// Starts a server and returns once it accepts connections.
    ///
    /// # Panics
    ///
    /// If the server cannot be started. The message says what to install, or shows the server's output.
    pub fn start() -> Self {
        let programs = programs().unwrap_or_else(|| panic!("{INSTALL}"));
        let dir = tempfile::Builder::new()
            .prefix("leasehold-postgres-")
            .tempdir()
            .expect("a directory");
        let unprivileged = Unprivileged::of(dir.path());
        let data = dir.path().join("data").display().to_string();
        initialise(&programs, &unprivileged, &data);
        let log = dir.path().join("postgres.log");
        let mut arguments = unprivileged.wrapper.clone();
        arguments.extend(["--pdeathsig", "KILL"].map(String::from));
        arguments.push(programs.join("postgres").display().to_string());
        arguments.extend(["-D".into(), data]);
        let settings = [
            "listen_addresses=".into(),
            format!("unix_socket_directories={}", dir.path().display()),
            "fsync=off".into(),
            // In the directory, not in /dev/shm, where it would outlive a server that was killed.
            "dynamic_shared_memory_type=mmap".into(),
            "shared_buffers=16MB".into(),
        ];
        arguments.extend(settings.into_iter().flat_map(|set| ["-c".into(), set]));
        let mut process = spawn_bound("setpriv", &arguments, &[], &log).expect("setpriv");
        until("postgres accepts connections", || {
            let written = fs::read_to_string(&log).unwrap_or_default();
            if let Ok(Some(status)) = process.try_wait() {
                panic!("postgres ended at once ({status}) and wrote:\n{written}");
            }
            written.contains("ready to accept connections")
        });
        Self {
            process,
            programs,
            dir,
        }
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Returns the directory of its socket and its data.
    pub fn directory(&self) -> &Path {
        self.dir.path()
    }

    /// Returns a session of `psql`.
    ///
    /// # Panics
    ///
    /// If `psql` cannot be started.
    pub fn session(&self) -> PsqlSession {
        PsqlSession::start(&self.programs.join("psql"), self.dir.path(), USER)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // SIGQUIT, the "immediate shutdown", ends the server and its helpers at once. Unlike SIGKILL, it
        // lets the server free its shared memory.
        let pid = i32::try_from(self.pid()).map(Pid::from_raw);
        if let Ok(pid) = pid {
            let _ = kill(pid, Signal::SIGQUIT);
        }
        let _ = self.process.wait();
    }
}

/// How to start commands that must not run as root.
struct Unprivileged {
    /// Arguments for setpriv(1).
    wrapper: Vec<String>,
}

impl Unprivileged {
    /// Gives `dir` to the unprivileged user if this process runs as root.
    fn of(dir: &Path) -> Self {
        if !geteuid().is_root() {
            return Self { wrapper: vec![] };
        }
        let nobody = User::from_name("nobody").ok().flatten();
        let nobody = nobody.expect("a user called nobody, since postgres refuses to run as root");
        chown(dir, Some(nobody.uid), Some(nobody.gid)).expect("root may do that");
        let (user, group) = (nobody.uid.to_string(), nobody.gid.to_string());
        let wrapper = ["--reuid", &user, "--regid", &group, "--clear-groups"];
        Self {
            wrapper: wrapper.map(String::from).into(),
        }
    }
}

fn initialise(programs: &Path, unprivileged: &Unprivileged, data: &str) {
    let made = Command::new("setpriv")
        .args(&unprivileged.wrapper)
        .arg(programs.join("initdb"))
        .args(["--pgdata", data, "--username", USER, "--auth", "trust"])
        .args(["--encoding", "UTF8", "--no-locale", "--no-sync"])
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .expect("setpriv");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "initdb: {}\n{said}", made.status);
}

/// Returns the folder with `initdb`, `postgres` and `psql`: a folder in `PATH`, or the newest one that
/// Debian installed. Debian keeps the server's programs out of `PATH`.
fn programs() -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "where a user's programs are")]
    let path: OsString = std::env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut versions: Vec<PathBuf> = versions.flatten().map(|entry| entry.path()).collect();
    versions.sort_by_key(|folder| {
        let name = folder.file_name().and_then(|name| name.to_str());
        std::cmp::Reverse(name.and_then(|name| name.parse::<u32>().ok()))
    });
    let mut folders = std::env::split_paths(&path).chain(versions.iter().map(|v| v.join("bin")));
    folders.find(|folder| {
        ["initdb", "postgres", "psql"]
            .iter()
            .all(|name| folder.join(name).exists())
    })
}
