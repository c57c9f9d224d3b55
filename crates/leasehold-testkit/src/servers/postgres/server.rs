use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use nix::unistd::{User, chown, geteuid};
use tempfile::TempDir;

use crate::servers::ports::{free_port, retry_taken_ports};
use crate::servers::server_process::{
    Ready, ServerProcess, directory, folder_of, is_process, path_folders,
};
use crate::servers::{PsqlSession, TestCa, until};

/// The configuration of a [`PostgresServer`].
#[derive(Debug, Default)]
pub struct PostgresBuilder {
    settings: Vec<String>,
    ca: Option<TestCa>,
    client_certificates: bool,
    /// The port of the server to follow.
    primary: Option<u16>,
}

/// A real PostgreSQL server on a loopback port, and on a socket in a directory of its own. Dropping it stops the
/// server. The server does not wait for the disk. What it acknowledged survives its own crash, but no crash of the machine.
///
/// PostgreSQL refuses to run as root. If this process is root, the server runs as the user `nobody`.
#[derive(Debug)]
pub struct PostgresServer {
    process: ServerProcess,
    programs: PathBuf,
    port: u16,
    ca: Option<TestCa>,
}

/// The superuser as which the tests log in.
const USER: &str = "tester";

impl PostgresBuilder {
    /// Sets a parameter of the server.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push(format!("{name}={value}"));
        self
    }

    /// Offers TLS, with a certificate of an authority of its own.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.ca = Some(TestCa::new());
        self
    }

    /// Offers TLS, and demands it of all clients over TCP, with a certificate in the name of the user.
    #[must_use]
    pub fn client_certificates(mut self) -> Self {
        self.client_certificates = true;
        self.tls()
    }

    /// Makes it a standby that follows the server at `port`, under this name. The port may be that of a proxy.
    #[must_use]
    pub fn standby_of(mut self, port: u16, name: &str) -> Self {
        self.primary = Some(port);
        let connection = format!(
            "host=127.0.0.1 port={port} user={USER} password={} application_name={name}",
            PostgresServer::PASSWORD
        );
        self.setting("primary_conninfo", &connection)
    }

    /// Starts the server and returns once it accepts connections.
    ///
    /// # Panics
    ///
    /// If the server cannot be started. The message says what to install, or shows the server's output.
    pub fn start(mut self) -> PostgresServer {
        let programs = programs().unwrap_or_else(|error| panic!("{error}"));
        let dir = directory("postgres").expect("a directory");
        let unprivileged = Unprivileged::of(dir.path());
        let data = dir.path().join("data").display().to_string();
        match self.primary {
            Some(primary) => unprivileged.copy(&programs, primary, &data),
            None => unprivileged.initialise(&programs, dir.path(), &data),
        }
        if let Some(ca) = &self.ca {
            self.settings
                .extend(unprivileged.certificate(ca, dir.path()));
        }
        if self.client_certificates {
            let rules =
                "local all all trust\nhostssl all all all scram-sha-256 clientcert=verify-full\n";
            let file = dir.path().join("pg_hba.conf");
            fs::write(&file, rules).expect("a file");
            unprivileged.give(&file);
            self.settings.push(format!("hba_file={}", file.display()));
        }
        let command = self.arguments(&programs, &unprivileged, &dir);
        // A standby accepts read-only ones.
        let ready = Ready::Writes("ready to accept ");
        let mut server = PostgresServer {
            process: ServerProcess::new("postgres", command, ready, dir),
            programs,
            port: 0,
            ca: self.ca,
        };
        // The "immediate shutdown". Unlike SIGKILL, it lets the server free its shared memory.
        server.process.end = Signal::SIGQUIT;
        let started = retry_taken_ports(|| {
            server.port = free_port();
            let port = format!("port={}", server.port);
            // The last setting counts.
            server.process.command.extend(["-c".into(), port]);
            server.process.start()
        });
        started.unwrap_or_else(|error| panic!("{error}"));
        server
    }

    fn arguments(
        &self,
        programs: &Path,
        unprivileged: &Unprivileged,
        dir: &TempDir,
    ) -> Vec<String> {
        let mut arguments = unprivileged.command(&programs.join("postgres"));
        let data = dir.path().join("data").display().to_string();
        arguments.extend(["-D".into(), data]);
        let settings = [
            "listen_addresses=127.0.0.1".into(),
            format!("unix_socket_directories={}", dir.path().display()),
            "fsync=off".into(),
            // In the directory, not in /dev/shm, where it would outlive a server that was killed.
            "dynamic_shared_memory_type=mmap".into(),
            "shared_buffers=16MB".into(),
            "max_connections=400".into(),
            "wal_keep_size=64MB".into(),
        ];
        let settings = settings.iter().chain(&self.settings);
        arguments.extend(settings.flat_map(|set| ["-c".into(), set.clone()]));
        arguments
    }
}

impl PostgresServer {
    /// The password of the superuser.
    pub const PASSWORD: &str = "tester-secret";

    /// Starts a server with default settings.
    ///
    /// # Panics
    ///
    /// As [`PostgresBuilder::start`].
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// Returns a builder for a server with other settings.
    pub fn builder() -> PostgresBuilder {
        PostgresBuilder::default()
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the address for a client that logs in as the superuser.
    pub fn url(&self) -> String {
        Self::url_at(self.port)
    }

    /// Returns the same address at another port, such as that of a proxy.
    pub fn url_at(port: u16) -> String {
        format!(
            "postgres://{USER}:{}@127.0.0.1:{port}/postgres",
            Self::PASSWORD
        )
    }

    /// Returns the authority that signed its certificate.
    ///
    /// # Panics
    ///
    /// If it was started without [`PostgresBuilder::tls`].
    pub fn ca(&self) -> &TestCa {
        self.ca.as_ref().expect("a server with TLS")
    }

    /// Returns the directory of its socket and its data.
    pub fn directory(&self) -> &Path {
        self.process.dir()
    }

    /// Returns a session of `psql`.
    ///
    /// # Panics
    ///
    /// If `psql` cannot be started.
    pub fn session(&self) -> PsqlSession {
        let psql = self.programs.join("psql");
        PsqlSession::start(&psql, self.process.dir(), self.port, USER)
    }

    /// Runs `sql` in a session of its own, and returns the lines of the answer.
    ///
    /// # Panics
    ///
    /// If `psql` cannot be started, or an error is among the lines.
    pub fn sql(&self, sql: &str) -> Vec<String> {
        let lines = self.session().run(sql);
        assert!(
            !lines.iter().any(|line| line.starts_with("ERROR")),
            "{sql}: {lines:?}"
        );
        lines
    }

    /// Makes a standby a primary, and returns once it is.
    ///
    /// # Panics
    ///
    /// If it is none, or does not become one.
    pub fn promote(&self) {
        self.sql("select pg_promote();");
        until("the standby is promoted", || {
            self.sql("select pg_is_in_recovery();") == ["f"]
        });
    }
}

is_process!(PostgresServer);

/// How to start commands that must not run as root.
#[derive(Debug)]
pub(in crate::servers) struct Unprivileged {
    /// Arguments for setpriv(1).
    wrapper: Vec<String>,
    user: Option<User>,
}

impl Unprivileged {
    /// Gives `dir` to the unprivileged user if this process runs as root.
    pub(in crate::servers) fn of(dir: &Path) -> Self {
        if !geteuid().is_root() {
            return Self {
                wrapper: vec![],
                user: None,
            };
        }
        let nobody = User::from_name("nobody").ok().flatten();
        let nobody = nobody.expect("a user called nobody, since postgres refuses to run as root");
        let (user, group) = (nobody.uid.to_string(), nobody.gid.to_string());
        let wrapper = ["--reuid", &user, "--regid", &group, "--clear-groups"];
        let unprivileged = Self {
            wrapper: wrapper.map(String::from).into(),
            user: Some(nobody),
        };
        unprivileged.give(dir);
        unprivileged
    }

    fn give(&self, path: &Path) {
        if let Some(user) = &self.user {
            chown(path, Some(user.uid), Some(user.gid)).expect("root may do that");
        }
    }

    fn initialise(&self, programs: &Path, dir: &Path, data: &str) {
        let password = dir.join("password");
        fs::write(&password, PostgresServer::PASSWORD).expect("a file");
        self.give(&password);
        let password = password.display().to_string();
        let mut initdb = self.tool(&programs.join("initdb"));
        initdb
            .args(["--pgdata", data, "--username", USER, "--pwfile", &password])
            .args(["--auth-local", "trust", "--auth-host", "scram-sha-256"])
            .args(["--encoding", "UTF8", "--no-locale", "--no-sync"]);
        succeed(initdb);
    }

    /// Copies the data of the primary, and makes it that of a standby.
    fn copy(&self, programs: &Path, primary: u16, data: &str) {
        let mut copy = self.tool(&programs.join("pg_basebackup"));
        let url = PostgresServer::url_at(primary);
        copy.args(["--pgdata", data, "--checkpoint", "fast", "--no-sync"])
            .args(["--write-recovery-conf", "--dbname", &url]);
        succeed(copy);
    }

    /// Copies the certificate of `ca` for the server. Returns the settings that name the copy.
    fn certificate(&self, ca: &TestCa, dir: &Path) -> [String; 4] {
        let copied = |from: PathBuf, name: &str| {
            let to = dir.join(name);
            fs::copy(from, &to).expect("a copy");
            fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).expect("a file");
            self.give(&to);
            to.display().to_string()
        };
        let certificate = copied(ca.server_certificate(), "server.pem");
        let key = copied(ca.server_key(), "server.key");
        let authority = copied(ca.certificate(), "ca.pem");
        [
            format!("ssl_ca_file={authority}"),
            "ssl=on".into(),
            format!("ssl_cert_file={certificate}"),
            format!("ssl_key_file={key}"),
        ]
    }

    /// Returns how a server is started: its program is the last word. A change of the user ends the bond to this process.
    pub(in crate::servers) fn command(&self, program: &Path) -> Vec<String> {
        let mut command = vec!["setpriv".into()];
        command.extend(self.wrapper.iter().cloned());
        command.extend(["--pdeathsig", "KILL"].map(String::from));
        command.push(program.display().to_string());
        command
    }

    /// Returns a command that runs to its end.
    fn tool(&self, program: &Path) -> Command {
        let mut command = Command::new("setpriv");
        command.args(&self.wrapper).arg(program);
        command.current_dir("/").stdin(Stdio::null());
        command
    }
}

fn succeed(mut command: Command) {
    let made = command.output().expect("setpriv");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(
        made.status.success(),
        "{command:?}: {}\n{said}",
        made.status
    );
}

/// Returns the folder with `initdb`, `postgres` and `psql`: a folder in `PATH`, or the newest one that
/// Debian installed. Debian keeps the server's programs out of `PATH`.
fn programs() -> io::Result<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut versions: Vec<PathBuf> = versions.flatten().map(|entry| entry.path()).collect();
    versions.sort_by_key(|folder| {
        let name = folder.file_name().and_then(|name| name.to_str());
        std::cmp::Reverse(name.and_then(|name| name.parse::<u32>().ok()))
    });
    let debian = versions.iter().map(|version| version.join("bin"));
    folder_of(
        &["postgres", "initdb", "psql", "pg_basebackup"],
        path_folders().into_iter().chain(debian),
    )
}
