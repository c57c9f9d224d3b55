use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::child::spawn_bound;
use super::redis_builder::Addresses;
use super::{RedisBuilder, Reply, RespConnection, ServerClock, TestCa, until};

/// A real `redis-server`, stopped when it is dropped.
#[derive(Debug)]
pub struct RedisServer {
    settings: RedisBuilder,
    addresses: Addresses,
    clock: Option<ServerClock>,
    process: Option<Child>,
    dir: TempDir,
}

impl RedisServer {
    /// Starts a server with default settings.
    ///
    /// # Panics
    ///
    /// As [`RedisBuilder::start`].
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// A server with settings of its own.
    pub fn builder() -> RedisBuilder {
        RedisBuilder::default()
    }

    pub(super) fn launch(settings: &RedisBuilder) -> io::Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("leasehold-redis-")
            .tempdir()?;
        let addresses = settings.configure(&dir)?;
        let clock = settings
            .steppable_clock
            .then(|| ServerClock::build(dir.path()))
            .transpose()?;
        let mut server = Self {
            settings: settings.clone(),
            addresses,
            clock,
            process: None,
            dir,
        };
        server.run()?;
        if settings.is_cluster() {
            server.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
            until("the cluster of one node is up", || {
                matches!(server.command(&["CLUSTER", "INFO"]),
                    Reply::Bulk(text) if text.contains("cluster_state:ok"))
            });
        }
        Ok(server)
    }

    /// The address for a client, with the password of the default user where it has one.
    pub fn url(&self) -> String {
        let password = self.settings.password.as_ref();
        let credentials = password.map_or(String::new(), |password| format!(":{password}@"));
        format!("redis://{credentials}127.0.0.1:{}", self.addresses.port)
    }

    /// The address of its TLS port.
    ///
    /// # Panics
    ///
    /// If it was started without [`RedisBuilder::tls`].
    pub fn tls_url(&self) -> String {
        let port = self.addresses.tls_port;
        let port = port.unwrap_or_else(|| panic!("this server was started without TLS"));
        format!("rediss://127.0.0.1:{port}")
    }

    /// The authority that signed its certificate.
    ///
    /// # Panics
    ///
    /// If it was started without [`RedisBuilder::tls`].
    pub fn ca(&self) -> &TestCa {
        let ca = self.settings.ca.as_deref();
        ca.unwrap_or_else(|| panic!("this server was started without TLS"))
    }

    /// Its Unix socket.
    ///
    /// # Panics
    ///
    /// If it was started without [`RedisBuilder::unix`].
    pub fn socket(&self) -> &Path {
        let path = self.addresses.unix.as_deref();
        path.unwrap_or_else(|| panic!("this server was started without a Unix socket"))
    }

    /// Its plain TCP port.
    pub fn port(&self) -> u16 {
        self.addresses.port
    }

    /// Its wall clock. A restart leaves it as it was set.
    ///
    /// # Panics
    ///
    /// If it was started without [`RedisBuilder::steppable_clock`].
    pub fn clock(&self) -> &ServerClock {
        let clock = self.clock.as_ref();
        clock.unwrap_or_else(|| panic!("this server was started without a clock of its own"))
    }

    /// Its process id.
    ///
    /// # Panics
    ///
    /// If it was killed.
    pub fn pid(&self) -> u32 {
        let process = self.process.as_ref();
        process
            .unwrap_or_else(|| panic!("this server was killed"))
            .id()
    }

    /// Stops it in its tracks (`SIGSTOP`); returns once it stands still. Its kernel goes on
    /// accepting connections and data for it.
    pub fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
        until("the server stands still", || self.state() == Some('T'));
    }

    /// Lets it go on (`SIGCONT`).
    pub fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Kills it at once (`SIGKILL`), frozen or not. Its port stays reserved for it.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // An error means that it has ended already; then waiting only collects it.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Starts it again on the same ports in the same directory, killing it first if it runs.
    ///
    /// # Panics
    ///
    /// As [`RedisBuilder::start`].
    pub fn restart(&mut self) {
        self.kill();
        self.run().unwrap_or_else(|error| panic!("{error}"));
    }

    /// How much of its changes has been written to its file so far, in bytes.
    ///
    /// # Panics
    ///
    /// If it was started without [`RedisBuilder::append_only`].
    pub fn appended(&self) -> u64 {
        let about = fs::metadata(self.append_file());
        about
            .unwrap_or_else(|error| panic!("no append-only file: {error}"))
            .len()
    }

    /// Starts it again as after a power cut: killed, and of its file no more left than the first
    /// `kept` bytes, those that had reached the disk.
    ///
    /// # Panics
    ///
    /// As [`restart`](Self::restart) and [`appended`](Self::appended).
    pub fn restart_after_power_cut(&mut self, kept: u64) {
        self.kill();
        let opened = fs::File::options().write(true).open(self.append_file());
        let cut = opened.and_then(|file| file.set_len(kept));
        cut.unwrap_or_else(|error| panic!("the append-only file cannot be cut: {error}"));
        self.restart();
    }

    /// The first of the files with changes: there is no other one, since none is rewritten.
    fn append_file(&self) -> PathBuf {
        let folder = self.dir.path().join("appendonlydir");
        folder.join("appendonly.aof.1.incr.aof")
    }

    /// A connection of no library, logged in as the default user.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub fn connect(&self) -> RespConnection {
        let opened = RespConnection::open(self.port());
        let mut connection = opened.unwrap_or_else(|error| panic!("{}: {error}", self.url()));
        if let Some(password) = &self.settings.password {
            let answer = connection.call(&["AUTH", password]);
            assert!(
                matches!(&answer, Ok(Reply::Status(status)) if status == "OK"),
                "AUTH: {answer:?}"
            );
        }
        connection
    }

    /// Sends one command on a new connection and returns the answer.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub fn command(&self, words: &[&str]) -> Reply {
        let answer = self.connect().call(words);
        answer.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    fn run(&mut self) -> io::Result<()> {
        let log = self.dir.path().join("redis.log");
        let configuration = self.dir.path().join("redis.conf").display().to_string();
        let clock = self.clock.iter().flat_map(ServerClock::environment);
        let environment: Vec<_> = clock.collect();
        let mut process = spawn_bound("redis-server", &[configuration], &environment, &log)?;
        let mut ended = None;
        let mut written = String::new();
        until("redis-server accepts connections", || {
            written = fs::read_to_string(&log).unwrap_or_default();
            ended = process.try_wait().ok().flatten();
            ended.is_some() || written.contains("eady to accept connections")
        });
        match ended {
            None => {
                self.process = Some(process);
                Ok(())
            }
            Some(_) if written.contains("Address already in use") => {
                Err(io::Error::new(io::ErrorKind::AddrInUse, written))
            }
            Some(status) => Err(io::Error::other(format!(
                "redis-server ended at once ({status}) and wrote:\n{written}"
            ))),
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).map(Pid::from_raw);
        let sent = pid.map(|pid| kill(pid, signal));
        assert!(matches!(sent, Ok(Ok(()))), "{signal}: {sent:?}");
    }

    /// The letter of the process's state; the name before it, in brackets, may hold anything.
    fn state(&self) -> Option<char> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}
