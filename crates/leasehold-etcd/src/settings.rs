//! The addresses of the servers, and how to talk to them.

use std::fmt;

use leasehold::{Error, Key};
use leasehold_credentials::{HostPort, Login, TlsSource};

use crate::proto::RangeRequest;

/// What the URL of a store says.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) servers: Vec<HostPort>,
    pub(crate) login: Option<Login>,
    pub(crate) tls: Option<TlsSource>,
    /// In front of every key.
    pub(crate) prefix: String,
}

impl Settings {
    /// Checks the files that are named: one that cannot be used is the caller's error.
    pub(crate) fn check_files(&self) -> Result<(), Error> {
        leasehold_credentials::check_files(self.tls.as_ref(), self.login.as_ref())
    }

    /// Returns whether the server may know the user of the client, and check its rights.
    pub(crate) fn names_a_user(&self) -> bool {
        let has_certificate = match &self.tls {
            None => false,
            Some(TlsSource::Files(files)) => files.identity.is_some(),
            // A configuration of the program may have a certificate, too.
            Some(_) => true,
        };
        self.login.is_some() || has_certificate
    }

    /// Returns the request that shows whether a server answers, and whether it reaches its leader. Its key never exists.
    pub(crate) fn probe(&self) -> RangeRequest {
        let key = format!("{}{}probe", self.prefix, Key::RESERVED_PREFIX);
        RangeRequest {
            key: key.into_bytes(),
            ..RangeRequest::default()
        }
    }
}

/// Names the store: its servers, and the prefix of its locks. No credentials.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<String> = self.servers.iter().map(ToString::to_string).collect();
        write!(f, "etcd {}", servers.join(","))?;
        if !self.prefix.is_empty() {
            write!(f, ", prefix {:?}", self.prefix)?;
        }
        Ok(())
    }
}
