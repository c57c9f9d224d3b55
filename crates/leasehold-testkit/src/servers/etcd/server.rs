use std::io;
use std::net::Ipv4Addr;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::servers::ports::{free_port, retry_taken_ports};
use crate::servers::server_process::ServerProcess;
use crate::servers::{EtcdBuilder, TestCa, http};

/// One real etcd server: alone, or a member of an [`EtcdSet`](crate::servers::EtcdSet). Dropping it stops the server.
#[derive(Debug)]
pub struct EtcdServer {
    settings: EtcdBuilder,
    ports: Ports,
    arguments: Vec<String>,
    process: Option<ServerProcess>,
    dir: TempDir,
}

/// The ports of one member.
#[derive(Clone, Copy, Debug)]
pub(in crate::servers) struct Ports {
    client: u16,
    pub(in crate::servers) peer: u16,
    /// Answers questions about health without TLS and login.
    metrics: u16,
}

const INSTALL: &str = "etcd is not installed, and this test needs a real one: run `cargo xtask test`, which \
     unpacks it under the target folder where it may and else says how";

impl Ports {
    pub(in crate::servers) fn free() -> Self {
        Self {
            client: free_port(),
            peer: free_port(),
            metrics: free_port(),
        }
    }
}

impl EtcdServer {
    /// Starts a server with default settings.
    ///
    /// # Panics
    ///
    /// As [`EtcdBuilder::start`].
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// Returns a builder for a server with other settings.
    pub fn builder() -> EtcdBuilder {
        EtcdBuilder::default()
    }

    /// Starts a member called `name` and does not wait for it. `advertised` is the port at which the other members
    /// of `cluster` reach it.
    pub(in crate::servers) fn launch(
        settings: &EtcdBuilder,
        name: &str,
        ports: Ports,
        advertised: u16,
        cluster: &str,
    ) -> io::Result<Self> {
        if let Err(error) = Command::new("etcd").arg("--version").output() {
            return Err(io::Error::new(error.kind(), format!("{INSTALL} ({error})")));
        }
        let dir = tempfile::Builder::new()
            .prefix("leasehold-etcd-")
            .tempdir()?;
        let (scheme, local) = (settings.scheme(), Ipv4Addr::LOCALHOST);
        let mut arguments = vec!["etcd".into()];
        arguments.extend(settings.common_arguments(&dir.path().join("data")));
        let Ports {
            client,
            peer,
            metrics,
        } = ports;
        arguments.extend([
            format!("--name={name}"),
            format!("--listen-client-urls={scheme}://{local}:{client}"),
            format!("--advertise-client-urls={scheme}://{local}:{client}"),
            format!("--listen-peer-urls=http://{local}:{peer}"),
            format!("--initial-advertise-peer-urls=http://{local}:{advertised}"),
            format!("--initial-cluster={cluster}"),
            format!("--listen-metrics-urls=http://{local}:{metrics}"),
        ]);
        let mut server = Self {
            settings: settings.clone(),
            ports,
            arguments,
            process: None,
            dir,
        };
        server.run()?;
        Ok(server)
    }

    /// Returns its port for clients.
    pub fn port(&self) -> u16 {
        self.ports.client
    }

    /// Returns the authority that signed its certificate.
    ///
    /// # Panics
    ///
    /// If it was started without [`EtcdBuilder::tls`].
    pub fn ca(&self) -> &TestCa {
        let ca = self.settings.ca();
        ca.unwrap_or_else(|| panic!("this server was started without TLS"))
    }

    /// Returns its process id.
    ///
    /// # Panics
    ///
    /// If it was killed.
    pub fn pid(&self) -> u32 {
        self.process().id()
    }

    /// Stops the process (`SIGSTOP`), and returns once it is stopped. Its kernel still accepts connections
    /// and data for it.
    pub fn freeze(&self) {
        self.process().freeze();
    }

    /// Continues the stopped process (`SIGCONT`).
    pub fn thaw(&self) {
        self.process().thaw();
    }

    /// Kills the process at once (`SIGKILL`), frozen or not. Its ports stay reserved.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again on the same ports with the same data, and waits until it answers. Kills it first if it is
    /// running.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn restart(&mut self) {
        // Another process that looks for a free port may have this one for a moment.
        let started = retry_taken_ports(|| {
            self.kill();
            self.run()?;
            self.await_health()
        });
        started.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Returns whether it answers, and knows of a leader.
    pub fn is_healthy(&self) -> bool {
        is_healthy(self.ports.metrics)
    }

    /// Returns whether it is the leader.
    pub fn is_leader(&self) -> bool {
        let answer = http::get(self.ports.metrics, "/metrics").unwrap_or_default();
        answer.lines().any(|line| line == "etcd_server_is_leader 1")
    }

    /// Returns how often this method was called, for example `Range`.
    pub fn calls(&self, method: &str) -> u64 {
        let answer = http::get(self.ports.metrics, "/metrics").unwrap_or_default();
        let start = format!("grpc_server_started_total{{grpc_method=\"{method}\"");
        let mut lines = answer.lines().filter(|line| line.starts_with(&start));
        let count = lines.next().and_then(|line| line.rsplit(' ').next());
        count.and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// Runs `etcdctl` at this server.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn etcdctl(&self, words: &[&str]) -> Output {
        let output = self.etcdctl_command(words).output();
        output.unwrap_or_else(|error| panic!("etcdctl: {error}"))
    }

    /// Demands a login from now on. `user` may read and write the keys that begin with `prefix`. The password of the
    /// user `root`, who may do everything, is `root`.
    ///
    /// # Panics
    ///
    /// If the server refuses.
    pub fn demand_login(&self, user: &str, password: &str, prefix: &str) {
        let prefixed = [
            "role",
            "grant-permission",
            user,
            "readwrite",
            "--prefix=true",
            prefix,
        ];
        let commands: [&[&str]; 6] = [
            &["user", "add", "root:root"],
            &["user", "add", &format!("{user}:{password}")],
            &["role", "add", user],
            &prefixed,
            &["user", "grant-role", user, user],
            &["auth", "enable"],
        ];
        for words in commands {
            let output = self.etcdctl(words);
            assert!(output.status.success(), "{words:?}: {output:?}");
        }
    }

    /// Returns the command that runs `etcdctl` at this server.
    pub fn etcdctl_command(&self, words: &[&str]) -> Command {
        let (scheme, port) = (self.settings.scheme(), self.port());
        let mut command = Command::new("etcdctl");
        command
            .env("ETCDCTL_API", "3")
            .arg(format!("--endpoints={scheme}://127.0.0.1:{port}"));
        if let Some(ca) = self.settings.ca() {
            command
                .arg(format!("--cacert={}", ca.certificate().display()))
                .arg(format!("--cert={}", ca.server_certificate().display()))
                .arg(format!("--key={}", ca.server_key().display()));
        }
        command.args(words);
        command
    }

    /// Waits until the server answers.
    pub(in crate::servers) fn await_health(&mut self) -> io::Result<()> {
        let metrics = self.ports.metrics;
        let process = self.process.as_mut().expect("a server that was started");
        process.await_ready(|_| is_healthy(metrics))
    }

    fn run(&mut self) -> io::Result<()> {
        let log = self.dir.path().join("etcd.log");
        self.process = Some(ServerProcess::start("etcd", &self.arguments, &[], log)?);
        Ok(())
    }

    fn process(&self) -> &ServerProcess {
        let process = self.process.as_ref();
        process.unwrap_or_else(|| panic!("this server was killed"))
    }
}

fn is_healthy(metrics: u16) -> bool {
    let answer = http::get(metrics, "/health").unwrap_or_default();
    answer.contains(r#""health":"true""#)
}
