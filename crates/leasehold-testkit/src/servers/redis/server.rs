use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::servers::ports::retry_taken_ports;
use crate::servers::redis::builder::Addresses;
use crate::servers::server_process::{
    Ready, ServerProcess, directory, folder_of, is_process, path_folders,
};
use crate::servers::{RedisBuilder, Reply, RespConnection, ServerClock, TestCa, until};

/// A real `redis-server`. Dropping it stops the server.
#[derive(Debug)]
pub struct RedisServer {
    settings: RedisBuilder,
    addresses: Addresses,
    clock: Option<ServerClock>,
    process: ServerProcess,
}

impl RedisBuilder {
    /// Follows `primary`.
    #[must_use]
    pub fn replica_of(self, primary: &RedisServer) -> Self {
        self.directive("replicaof", &format!("127.0.0.1 {}", primary.port()))
    }

    /// Starts the server and returns once it accepts connections.
    ///
    /// # Panics
    ///
    /// If the server cannot be started. The message has the command that installs it, or shows its output.
    pub fn start(self) -> RedisServer {
        self.try_start().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`start`](Self::start), for programs.
    ///
    /// # Errors
    ///
    /// If the server cannot be started. The error has the command that installs it, or shows its output.
    pub fn try_start(self) -> io::Result<RedisServer> {
        folder_of(&["redis-server"], path_folders())?;
        retry_taken_ports(|| RedisServer::launch(&self))
    }
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

    /// Returns a builder for a server with other settings.
    pub fn builder() -> RedisBuilder {
        RedisBuilder::default()
    }

    fn launch(settings: &RedisBuilder) -> io::Result<Self> {
        let dir = directory("redis")?;
        let addresses = settings.configure(&dir)?;
        let clock = settings
            .steppable_clock
            .then(|| ServerClock::build(dir.path()))
            .transpose()?;
        let configuration = dir.path().join("redis.conf").display().to_string();
        let command = ["redis-server".into(), configuration];
        let ready = Ready::Writes("eady to accept connections");
        let mut process = ServerProcess::new("redis-server", command, ready, dir);
        process.environment = clock.iter().flat_map(ServerClock::environment).collect();
        process.start()?;
        let server = Self {
            settings: settings.clone(),
            addresses,
            clock,
            process,
        };
        if settings.is_cluster() {
            server.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
            until("the cluster of one node is up", || {
                matches!(server.command(&["CLUSTER", "INFO"]),
                    Reply::Bulk(text) if text.contains("cluster_state:ok"))
            });
        }
        Ok(server)
    }

    /// Returns the address for a client, with the password of the default user if there is one.
    pub fn url(&self) -> String {
        let password = self.settings.password.as_ref();
        let credentials = password.map_or(String::new(), |password| format!(":{password}@"));
        format!("redis://{credentials}127.0.0.1:{}", self.addresses.port)
    }

    /// Returns the address of its TLS port.
    ///
    /// # Panics
    ///
    /// If it was started without [`RedisBuilder::tls`].
    pub fn tls_url(&self) -> String {
        let port = self.addresses.tls_port;
        let port = port.unwrap_or_else(|| panic!("this server was started without TLS"));
        format!("rediss://127.0.0.1:{port}")
    }

    /// Returns the authority that signed its certificate.
    ///
    /// # Panics
    ///
    /// If it was started without [`RedisBuilder::tls`].
    pub fn ca(&self) -> &TestCa {
        let ca = self.settings.ca.as_deref();
        ca.unwrap_or_else(|| panic!("this server was started without TLS"))
    }

    /// Returns the path of its Unix socket.
    ///
    /// # Panics
    ///
    /// If it was started without [`RedisBuilder::unix`].
    pub fn socket(&self) -> &Path {
        let path = self.addresses.unix.as_deref();
        path.unwrap_or_else(|| panic!("this server was started without a Unix socket"))
    }

    /// Returns its plain TCP port.
    pub fn port(&self) -> u16 {
        self.addresses.port
    }

    /// Returns its wall clock. A restart does not change the clock.
    ///
    /// # Panics
    ///
    /// If it was started without [`RedisBuilder::steppable_clock`].
    pub fn clock(&self) -> &ServerClock {
        let clock = self.clock.as_ref();
        clock.unwrap_or_else(|| panic!("this server was started without a clock of its own"))
    }

    /// Returns how many bytes of its changes have been written to its file so far.
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

    /// Restarts it as after a power cut: kills it, and leaves only the first `kept` bytes of its file,
    /// which had reached the disk.
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

    /// Returns the first file with changes. There is no other one, since none is rewritten.
    fn append_file(&self) -> PathBuf {
        let folder = self.process.dir().join("appendonlydir");
        folder.join("appendonly.aof.1.incr.aof")
    }

    /// Opens a connection that uses no library, logged in as the default user.
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
}

is_process!(RedisServer);
