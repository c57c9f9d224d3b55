//! The servers that a URL names.

use std::fmt;
use std::net::IpAddr;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// One of the servers that a URL names.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) host: Host,
    /// The address to connect to, if the URL names it next to the host.
    pub(crate) address: Option<IpAddr>,
    pub(crate) port: u16,
}

impl Server {
    /// The name in the certificate of the server.
    pub(crate) fn name(&self) -> &str {
        match &self.host {
            Host::Tcp(name) => name,
            #[cfg(unix)]
            Host::Unix(_) => "",
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Tcp(name) if name.contains(':') => write!(f, "[{name}]")?,
            Host::Tcp(name) => f.write_str(&name.to_ascii_lowercase())?,
            #[cfg(unix)]
            Host::Unix(path) => path.display().fmt(f)?,
        }
        write!(f, ":{}", self.port)
    }
}

/// Returns the servers that the parameters of libpq name.
pub(crate) fn servers(config: &Config) -> Result<Vec<Server>, String> {
    let (hosts, ports) = (config.get_hosts(), config.get_ports());
    let addresses = config.get_hostaddrs();
    if hosts.is_empty() {
        return Err("no host".into());
    }
    if ports.len() > 1 && ports.len() != hosts.len() {
        return Err("another number of ports than of hosts".into());
    }
    if !addresses.is_empty() && addresses.len() != hosts.len() {
        return Err("hostaddr with another number of addresses than of hosts".into());
    }
    let server = |(at, host): (usize, &Host)| Server {
        host: host.clone(),
        address: addresses.get(at).copied(),
        port: *ports.get(at).or(ports.first()).unwrap_or(&5432),
    };
    Ok(hosts.iter().enumerate().map(server).collect())
}
