use std::io;
use std::sync::Arc;

use tempfile::TempDir;

use crate::servers::TestCa;
use crate::servers::ports::free_port;

/// The configuration of a [`RedisServer`](crate::servers::RedisServer). By default it keeps nothing across a restart, and accepts every
/// client.
#[derive(Clone, Debug, Default)]
pub struct RedisBuilder {
    pub(in crate::servers) password: Option<String>,
    pub(in crate::servers) ca: Option<Arc<TestCa>>,
    unix: bool,
    append_only: Option<AppendFsync>,
    pub(in crate::servers) steppable_clock: bool,
    cluster: bool,
    directives: Vec<(String, String)>,
}

/// How often a server forces its changes to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendFsync {
    /// Before each answer: a power cut loses nothing that the server acknowledged.
    Always,
    /// Once a second: a power cut loses up to a second or two.
    EverySecond,
}

impl AppendFsync {
    fn word(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::EverySecond => "everysec",
        }
    }
}

impl RedisBuilder {
    /// Requires this password of the default user (`requirepass`).
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Adds an ACL user. The rules are those after `ACL SETUSER <user>`.
    #[must_use]
    pub fn acl(self, user: &str, rules: &str) -> Self {
        self.directive("user", &format!("{user} {rules}"))
    }

    /// Also listens for TLS, with a certificate of an authority of its own.
    #[must_use]
    pub fn tls(self) -> Self {
        self.tls_with(Arc::new(TestCa::new()))
    }

    /// Also listens for TLS, with a certificate of `ca`.
    #[must_use]
    pub fn tls_with(mut self, ca: Arc<TestCa>) -> Self {
        self.ca = Some(ca);
        self
    }

    /// Demands a certificate of each client, as servers with TLS do by default. Needs [`tls`](Self::tls).
    #[must_use]
    pub fn client_certificates(self) -> Self {
        // The last line of a name counts.
        self.directive("tls-auth-clients", "yes")
    }

    /// Also listens on a Unix socket.
    #[must_use]
    pub fn unix(mut self) -> Self {
        self.unix = true;
        self
    }

    /// Writes every change to disk before it answers (`appendonly yes`, `appendfsync always`), so
    /// that a restart loses nothing.
    #[must_use]
    pub fn durable(self) -> Self {
        self.append_only(AppendFsync::Always)
    }

    /// Writes every change to a file (`appendonly yes`), and forces it to disk as often as `fsync` says.
    /// The file is never rewritten.
    #[must_use]
    pub fn append_only(mut self, fsync: AppendFsync) -> Self {
        self.append_only = Some(fsync);
        self
    }

    /// Gives the server a wall clock of its own, which [`RedisServer::clock`](crate::servers::RedisServer::clock) steps. Needs a C compiler.
    #[must_use]
    pub fn steppable_clock(mut self) -> Self {
        self.steppable_clock = true;
        self
    }

    /// Runs in cluster mode, owning all slots.
    #[must_use]
    pub fn cluster(mut self) -> Self {
        self.cluster = true;
        self
    }

    /// Adds a line to the server's configuration.
    #[must_use]
    pub fn directive(mut self, name: &str, value: &str) -> Self {
        self.directives.push((name.into(), value.into()));
        self
    }

    /// Writes `redis.conf` for fresh ports into `dir`.
    pub(in crate::servers) fn configure(&self, dir: &TempDir) -> io::Result<Addresses> {
        let addresses = Addresses {
            port: free_port(),
            tls_port: self.ca.as_ref().map(|_| free_port()),
            unix: self.unix.then(|| dir.path().join("redis.sock")),
        };
        let mut lines = vec![
            "bind 127.0.0.1".to_owned(),
            format!("port {}", addresses.port),
            format!("dir {}", dir.path().display()),
            "save \"\"".to_owned(),
            "daemonize no".to_owned(),
        ];
        if let Some(fsync) = self.append_only {
            lines.push("appendonly yes".to_owned());
            lines.push(format!("appendfsync {}", fsync.word()));
            lines.push("auto-aof-rewrite-percentage 0".to_owned());
        }
        if let (Some(ca), Some(port)) = (&self.ca, addresses.tls_port) {
            lines.push(format!("tls-port {port}"));
            lines.push(format!(
                "tls-cert-file {}",
                ca.server_certificate().display()
            ));
            lines.push(format!("tls-key-file {}", ca.server_key().display()));
            lines.push(format!("tls-ca-cert-file {}", ca.certificate().display()));
            lines.push("tls-auth-clients no".to_owned());
        }
        if let Some(path) = &addresses.unix {
            lines.push(format!("unixsocket {}", path.display()));
        }
        if let Some(password) = &self.password {
            lines.push(format!("requirepass {password}"));
        }
        if self.cluster {
            lines.push("cluster-enabled yes".to_owned());
            lines.push(format!("cluster-port {}", free_port()));
        }
        let added = self.directives.iter();
        lines.extend(added.map(|(name, value)| format!("{name} {value}")));
        std::fs::write(dir.path().join("redis.conf"), lines.join("\n") + "\n")?;
        Ok(addresses)
    }

    pub(in crate::servers) fn is_cluster(&self) -> bool {
        self.cluster
    }
}

/// The addresses on which a server listens.
#[derive(Clone, Debug)]
pub(in crate::servers) struct Addresses {
    pub(in crate::servers) port: u16,
    pub(in crate::servers) tls_port: Option<u16>,
    pub(in crate::servers) unix: Option<std::path::PathBuf>,
}
