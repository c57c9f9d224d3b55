use leasehold::{Error, ErrorKind};

use super::answer::Answer;
use super::command::Command;
use super::failure::Rights;

/// What a server says about itself, as far as locks depend on it: some sections of INFO.
#[derive(Debug)]
pub(crate) struct Info(String);

impl Info {
    /// Asks for each section on its own, since servers before Redis 7.0 take one at a time.
    pub(crate) fn questions() -> Vec<Command> {
        let sections = ["server", "replication", "cluster", "memory", "persistence"];
        let question = |section| Command::new("INFO").arg(section);
        sections.into_iter().map(question).collect()
    }

    /// Reads the answers to [`questions`](Self::questions).
    pub(crate) fn read(answers: &[Answer], user: &str) -> Result<Self, Error> {
        let mut info = String::new();
        for answer in answers {
            match (answer, answer.as_text()) {
                (Answer::Refused(refusal), _) => {
                    return Err(refusal.to_error(user, Rights("+info")));
                }
                (_, Some(text)) => info.push_str(text),
                (_, None) => {
                    let strange = "INFO was not answered with text: is it a Redis server?";
                    return Err(Error::new(ErrorKind::Garbled, strange));
                }
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

    /// Whether SET may say NX and GET at once (Redis 7.0).
    ///
    /// # Errors
    ///
    /// If the server is older than Redis 6.2, or does not say how old it is.
    pub(super) fn has_set_nx_get(&self) -> Result<bool, Error> {
        let version = self.demand("redis_version")?;
        let parsed = major_minor(version).ok_or_else(|| missing("a version"))?;
        if parsed < (6, 2) {
            let rule = format!("the server is Redis {version}: at least 6.2 is needed");
            return Err(Error::new(ErrorKind::Unsupported, rule));
        }
        Ok(parsed >= (7, 0))
    }

    /// Refuses a server that is no independent primary.
    pub(super) fn check_role(&self) -> Result<(), Error> {
        self.demand("role")?;
        match self.foreign_role() {
            Some(rule) => Err(Error::new(ErrorKind::Unsupported, rule)),
            None => Ok(()),
        }
    }

    /// Why the server can be no member, if so.
    pub(crate) fn unfit(&self) -> Option<String> {
        self.foreign_role().map(str::to_owned).or(self.evicts())
    }

    fn foreign_role(&self) -> Option<&'static str> {
        if self.field("role") != Some("master") {
            return Some(
                "the server is a replica: locks live on primaries alone, since a replica may lag \
                 behind or forget",
            );
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

fn missing(name: &str) -> Error {
    let message = format!("INFO does not say {name}: is it a Redis server?");
    Error::new(ErrorKind::Garbled, message)
}

fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(version: &str, role: &str, cluster: &str) -> Info {
        Info(format!(
            "# Server\r\nredis_version:{version}\r\nrun_id:abc\r\n\
             # Replication\r\nrole:{role}\r\n# Cluster\r\ncluster_enabled:{cluster}\r\n"
        ))
    }

    #[test]
    fn servers_of_a_known_age_are_members() {
        let set_nx_get = |version| info(version, "master", "0").has_set_nx_get();
        assert!(set_nx_get("7.0.15").unwrap());
        assert!(set_nx_get("255.255.255").unwrap());
        assert!(!set_nx_get("6.2.14").unwrap());
        let error = set_nx_get("6.0.16").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("at least 6.2"), "{error}");
        assert_eq!(set_nx_get("x").unwrap_err().kind(), ErrorKind::Garbled);
    }

    #[test]
    fn only_independent_primaries_are_members() {
        let primary = info("7.0.15", "master", "0");
        primary.check_role().unwrap();
        assert_eq!(primary.demand("run_id").unwrap(), "abc");
        assert_eq!(primary.unfit(), None);
        for (role, cluster, rule) in [
            ("slave", "0", "primaries alone"),
            ("master", "1", "node of a Redis Cluster"),
        ] {
            let info = info("7.0.15", role, cluster);
            let error = info.check_role().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(rule), "{error}");
            assert!(info.unfit().unwrap().contains(rule));
        }
        let error = Info("redis_version:7.0.0".into()).check_role().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Garbled);
    }

    #[test]
    fn a_server_that_may_evict_is_unfit() {
        let unfit = |bytes: &str, policy: &str| {
            Info(format!(
                "role:master\r\nmaxmemory:{bytes}\r\nmaxmemory_human:1G\r\n\
                 maxmemory_policy:{policy}\r\n"
            ))
            .unfit()
        };
        assert_eq!(unfit("0", "allkeys-lru"), None);
        assert_eq!(unfit("1000", "noeviction"), None);
        for policy in ["allkeys-lru", "volatile-ttl"] {
            assert!(unfit("1000", policy).unwrap().contains(policy));
        }
    }
}
