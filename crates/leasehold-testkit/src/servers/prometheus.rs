use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::servers::http;
use crate::servers::ports::free_port;
use crate::servers::server_process::ServerProcess;

/// A Prometheus server with its data in a directory of its own. Dropping it stops it.
#[derive(Debug)]
pub struct Prometheus {
    _process: ServerProcess,
    port: u16,
    _dir: TempDir,
}

const INSTALL: &str = "Prometheus is not here, and this test needs a real one: run `cargo xtask setup`, which unpacks it \
     where it may and else says how";

impl Prometheus {
    /// Starts a server with this configuration file, and returns once it answers.
    ///
    /// # Panics
    ///
    /// If it cannot be started. The message says what to install, or shows its output.
    pub fn start(configuration: &Path) -> Self {
        if let Err(error) = Command::new("prometheus").arg("--version").output() {
            panic!("{INSTALL} ({error})");
        }
        let dir = tempfile::Builder::new()
            .prefix("leasehold-prometheus-")
            .tempdir()
            .expect("a directory");
        let port = free_port();
        let command = [
            "prometheus".to_owned(),
            format!("--config.file={}", configuration.display()),
            format!("--storage.tsdb.path={}", dir.path().join("data").display()),
            format!("--web.listen-address={}:{port}", Ipv4Addr::LOCALHOST),
            "--log.level=warn".to_owned(),
        ];
        let log = dir.path().join("prometheus.log");
        let process = ServerProcess::start("prometheus", &command, &[], log);
        let mut process = process.expect("setpriv");
        let is_ready = || http::get(port, "/-/ready").is_ok_and(|text| text.contains("is Ready"));
        let started = process.await_ready(|_| is_ready());
        started.unwrap_or_else(|error| panic!("{error}"));
        Self {
            _process: process,
            port,
            _dir: dir,
        }
    }

    /// Returns what the server answers to a request for `path`, such as `/api/v1/query?query=up`.
    ///
    /// # Panics
    ///
    /// If it does not answer.
    pub fn get(&self, path: &str) -> String {
        http::get(self.port, path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}
