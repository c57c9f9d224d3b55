use std::path::Path;
use std::sync::Arc;

use crate::servers::TestCa;

/// The settings of [`EtcdServer`](crate::servers::EtcdServer) and [`EtcdSet`](crate::servers::EtcdSet).
#[derive(Clone, Debug, Default)]
pub struct EtcdBuilder {
    ca: Option<Arc<TestCa>>,
    demands_certificates: bool,
    elects_fast: bool,
    arguments: Vec<String>,
}

impl EtcdBuilder {
    /// Clients connect by TLS.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.ca = Some(Arc::new(TestCa::new()));
        self
    }

    /// Clients connect by TLS, and prove who they are by a certificate of the same authority.
    #[must_use]
    pub fn client_certificates(self) -> Self {
        let mut settings = self.tls();
        settings.demands_certificates = true;
        settings
    }

    /// The members elect a leader within half a second. The shortest lease is then one second.
    #[must_use]
    pub fn fast_elections(mut self) -> Self {
        self.elects_fast = true;
        self
    }

    /// Adds an argument of the command line, such as `--quota-backend-bytes=33554432`.
    #[must_use]
    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(in crate::servers) fn ca(&self) -> Option<&Arc<TestCa>> {
        self.ca.as_ref()
    }

    /// Returns the scheme of the URLs for clients.
    pub(in crate::servers) fn scheme(&self) -> &'static str {
        if self.ca.is_some() { "https" } else { "http" }
    }

    /// Returns the arguments that are the same for all members.
    pub(in crate::servers) fn common_arguments(&self, data: &Path) -> Vec<String> {
        let mut arguments = vec![
            format!("--data-dir={}", data.display()),
            "--log-level=error".into(),
            "--logger=zap".into(),
            // Logins are as quick as they can be.
            "--bcrypt-cost=4".into(),
            // The tests kill processes, not machines.
            "--unsafe-no-fsync".into(),
        ];
        if self.elects_fast {
            arguments.extend(["--heartbeat-interval=50", "--election-timeout=500"].map(Into::into));
        }
        if let Some(ca) = &self.ca {
            let (certificate, key) = (ca.server_certificate(), ca.server_key());
            arguments.push(format!("--cert-file={}", certificate.display()));
            arguments.push(format!("--key-file={}", key.display()));
            arguments.push(format!("--trusted-ca-file={}", ca.certificate().display()));
            arguments.push(format!("--client-cert-auth={}", self.demands_certificates));
        }
        arguments.extend(self.arguments.iter().cloned());
        arguments
    }
}
