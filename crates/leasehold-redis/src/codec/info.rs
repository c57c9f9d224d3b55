use leasehold::{Error, ErrorKind};

use super::failure::{Rights, refused};
use crate::resp::{CommandWriter, Value};

/// What a server reports about itself: some sections of `INFO`.
#[derive(Debug)]
pub(crate) struct Info(String);

/// The oldest version that supports the scripts.
const OLDEST: (u32, u32) = (6, 2);

impl Info {
    /// All sections that locks depend on.
    pub(crate) const SECTIONS: [&str; 5] =
        ["server", "replication", "cluster", "memory", "persistence"];

    /// The sections that [`check`](Self::check) and [`check_eviction`](Self::check_eviction) need.
    pub(crate) const CHECKED: [&str; 4] = ["server", "replication", "cluster", "memory"];

    /// Asks for each section in a command of its own, since servers before Redis 7.0 accept only one.
    pub(crate) fn write(sections: &[&str], out: &mut CommandWriter<'_>) {
        for section in sections {
            out.command("INFO").arg(section);
        }
    }

    /// Reads the answers to [`write`](Self::write).
    pub(crate) fn read(answers: &[Value], user: &str) -> Result<Self, Error> {
        let mut info = String::new();
        for answer in answers {
            match answer {
                Value::Error { code, message } => {
                    return Err(refused(code, message, user, Rights("+info")));
                }
                answer => match answer.as_text() {
                    Some(text) => info.push_str(text),
                    None => {
                        let rule = "INFO was not answered with text: is it a Redis server?";
                        return Err(Error::new(ErrorKind::InvalidResponse, rule));
                    }
                },
            }
        }
        Ok(Self(info))
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.0.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = fields.find(|(field, _)| *field == name)?;
        Some(value.trim())
    }

    pub(crate) fn demand(&self, name: &str) -> Result<&str, Error> {
        self.field(name).ok_or_else(|| missing(name))
    }

    /// Refuses a server that is too old or is not an independent primary.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |rule: String| Err(Error::new(ErrorKind::Unsupported, rule));
        let version = self.demand("redis_version")?;
        let parsed = major_minor(version).ok_or_else(|| missing("a version"))?;
        if parsed < OLDEST {
            return refuse(format!(
                "the server is Redis {version}: at least 6.2 is needed"
            ));
        }
        if !self.is_sentinel() {
            self.demand("role")?;
        }
        match self.foreign_role() {
            // Its address may lead to the primary soon, or it may be promoted.
            Some(REPLICA) => Err(Error::new(ErrorKind::Unreachable, REPLICA)),
            Some(rule) => refuse(rule.into()),
            None => Ok(()),
        }
    }

    /// Refuses a server that may evict locks.
    pub(crate) fn check_eviction(&self) -> Result<(), Error> {
        self.evicts().map_or(Ok(()), |rule| {
            let rule = format!(
                "{rule}, or accept a second holder with ?evicting=accept in the URL of a single server"
            );
            Err(Error::new(ErrorKind::Misconfigured, rule))
        })
    }

    /// Returns whether the server supports `SET` with `NX` and `GET` together.
    pub(crate) fn has_plain_commands(&self) -> bool {
        let version = self.field("redis_version").and_then(major_minor);
        version.is_some_and(|(major, _)| major >= 7)
    }

    /// Returns why the server cannot be a member, if so.
    pub(crate) fn unfit(&self) -> Option<String> {
        let role = self.foreign_role().map(str::to_owned);
        role.or_else(|| self.evicts())
    }

    fn is_sentinel(&self) -> bool {
        self.field("redis_mode") == Some("sentinel")
    }

    fn foreign_role(&self) -> Option<&'static str> {
        if self.is_sentinel() {
            return Some(
                "this is a Sentinel, which keeps no locks: give the address of the primary",
            );
        }
        if self.field("role") != Some("master") {
            return Some(REPLICA);
        }
        (self.field("cluster_enabled") == Some("1")).then_some(
            "the server is a node of a Redis Cluster: members are independent, plain servers",
        )
    }

    fn evicts(&self) -> Option<String> {
        let bytes = self.field("maxmemory").filter(|bytes| *bytes != "0")?;
        let policy = self.field("maxmemory_policy").unwrap_or("unknown");
        (policy != "noeviction").then(|| {
            format!(
                "the server may throw locks away when its memory is full (maxmemory {bytes}, \
                 maxmemory-policy {policy}): set maxmemory-policy noeviction"
            )
        })
    }
}

const REPLICA: &str = "the server is a replica: locks live on primaries alone, since a replica may lag behind or \
                       forget";

fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn missing(name: &str) -> Error {
    let message = format!("INFO does not say {name}: is it a Redis server?");
    Error::new(ErrorKind::InvalidResponse, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(version: &str, role: &str, cluster: &str) -> Result<(), Error> {
        let text = format!(
            "# Server\r\nredis_version:{version}\r\nrun_id:abc\r\n\
             # Replication\r\nrole:{role}\r\n# Cluster\r\ncluster_enabled:{cluster}\r\n"
        );
        Info(text).check()
    }

    #[test]
    fn old_servers_are_refused() {
        for version in ["6.2.14", "7.0.15", "255.255.255"] {
            check(version, "master", "0").unwrap();
        }
        let error = check("6.0.16", "master", "0").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("at least 6.2"), "{error}");
        let error = check("x", "master", "0").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidResponse);
    }

    #[test]
    fn only_independent_primaries_are_members() {
        use ErrorKind::{Unreachable, Unsupported};
        for (role, cluster, kind, rule) in [
            ("slave", "0", Unreachable, "primaries alone"),
            ("master", "1", Unsupported, "node of a Redis Cluster"),
        ] {
            let error = check("7.0.15", role, cluster).unwrap_err();
            assert_eq!(error.kind(), kind);
            assert!(error.to_string().contains(rule), "{error}");
        }
        let sentinel = Info("redis_version:7.0.0\r\nredis_mode:sentinel\r\n".into());
        let error = sentinel.check().unwrap_err();
        assert_eq!(error.kind(), Unsupported);
        assert!(error.to_string().contains("address of the primary"));
        let error = Info("redis_version:7.0.0".into()).check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidResponse);
    }

    #[test]
    fn server_that_may_evict_is_unfit() {
        let unfit = |bytes: &str, policy: &str| {
            let text = format!(
                "role:master\r\nmaxmemory:{bytes}\r\nmaxmemory_human:1G\r\n\
                 maxmemory_policy:{policy}\r\n"
            );
            Info(text).unfit()
        };
        assert_eq!(unfit("0", "allkeys-lru"), None);
        assert_eq!(unfit("1000", "noeviction"), None);
        for policy in ["allkeys-lru", "volatile-ttl"] {
            assert!(unfit("1000", policy).unwrap().contains(policy));
        }
    }
}
