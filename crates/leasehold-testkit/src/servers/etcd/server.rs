use std::io;
use std::net::Ipv4Addr;
use std::process::{Command, Output};

use crate::servers::ports::free_port;
use crate::servers::server_process::{
    Ready, ServerProcess, directory, folder_of, is_process, path_folders,
};
use crate::servers::{EtcdBuilder, TestCa, http};

/// One real etcd server: alone, or a member of an [`EtcdSet`](crate::servers::EtcdSet). Dropping it stops the server.
#[derive(Debug)]
pub struct EtcdServer {
    settings: EtcdBuilder,
    ports: Ports,
    pub(in crate::servers) process: ServerProcess,
}

/// The ports of one member.
#[derive(Clone, Copy, Debug)]
pub(in crate::servers) struct Ports {
    client: u16,
    pub(in crate::servers) peer: u16,
    /// Answers questions about health without TLS and login.
    metrics: u16,
}

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
        folder_of(&["etcd"], path_folders())?;
        let dir = directory("etcd")?;
        let (scheme, local) = (settings.scheme(), Ipv4Addr::LOCALHOST);
        let mut arguments = vec!["etcd".to_owned()];
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
        let ready = Ready::Answers(metrics, is_healthy);
        let mut process = ServerProcess::new("etcd", arguments, ready, dir);
        process.launch()?;
        Ok(Self {
            settings: settings.clone(),
            ports,
            process,
        })
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

    /// Returns whether it answers, and knows of a leader.
    pub fn is_healthy(&self) -> bool {
        is_healthy(self.ports.metrics)
    }

    /// Returns whether it is the leader.
    pub fn is_leader(&self) -> bool {
        let metrics = self.metrics();
        metrics
            .lines()
            .any(|line| line == "etcd_server_is_leader 1")
    }

    /// Returns how often this method was called, for example `Range`.
    pub fn calls(&self, method: &str) -> u64 {
        let metrics = self.metrics();
        let start = format!("grpc_server_started_total{{grpc_method=\"{method}\"");
        let mut lines = metrics.lines().filter(|line| line.starts_with(&start));
        let count = lines.next().and_then(|line| line.rsplit(' ').next());
        count.and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// Returns its metrics; no text if it does not answer.
    pub fn metrics(&self) -> String {
        http::get(self.ports.metrics, "/metrics").unwrap_or_default()
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
}

is_process!(EtcdServer);

fn is_healthy(metrics: u16) -> bool {
    let answer = http::get(metrics, "/health").unwrap_or_default();
    answer.contains(r#""health":"true""#)
}
