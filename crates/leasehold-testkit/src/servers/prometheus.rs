use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

use crate::servers::http;
use crate::servers::ports::free_port;
use crate::servers::server_process::{Ready, ServerProcess, directory, folder_of, path_folders};

/// A Prometheus server with its data in a directory of its own. Dropping it stops it.
#[derive(Debug)]
pub struct Prometheus {
    _process: ServerProcess,
    port: u16,
}

impl Prometheus {
    /// Starts a server with this configuration file, and returns once it answers.
    ///
    /// # Panics
    ///
    /// If it cannot be started. The message says what to install, or shows its output.
    pub fn start(configuration: &Path) -> Self {
        Self::try_start(configuration).unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_start(configuration: &Path) -> io::Result<Self> {
        folder_of(&["prometheus"], path_folders())?;
        let dir = directory("prometheus")?;
        let port = free_port();
        let command = [
            "prometheus".to_owned(),
            format!("--config.file={}", configuration.display()),
            format!("--storage.tsdb.path={}", dir.path().join("data").display()),
            format!("--web.listen-address={}:{port}", Ipv4Addr::LOCALHOST),
            "--log.level=warn".to_owned(),
        ];
        let is_ready =
            |port| http::get(port, "/-/ready").is_ok_and(|text| text.contains("is Ready"));
        let ready = Ready::Answers(port, is_ready);
        let mut process = ServerProcess::new("prometheus", command, ready, dir);
        process.start()?;
        Ok(Self {
            _process: process,
            port,
        })
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
