use leasehold::{Error, ErrorKind};

use super::answer::Answer;
use super::failure::Rights;

/// What a server says about itself, as far as locks depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerFacts {
    /// Drawn anew each time the server starts.
    pub(super) run_id: String,
    /// Whether SET may say NX and GET at once (Redis 7.0).
    pub(crate) set_nx_get: bool,
}

impl ServerFacts {
    /// Reads the answers to `INFO server`, `replication` and `cluster`, and refuses a server that
    /// cannot be a member.
    pub(super) fn from_answers(answers: &[Answer], user: &str) -> Result<Self, Error> {
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
        Self::read(&info)
    }

    fn read(info: &str) -> Result<Self, Error> {
        let field = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.strip_prefix(':')?.trim())
        };
        let missing = |name: &str| {
            let message = format!("INFO does not say {name}: is it a Redis server?");
            Error::new(ErrorKind::Garbled, message)
        };
        let demand = |name: &str| field(name).ok_or_else(|| missing(name));
        let refuse = |rule: String| Err(Error::new(ErrorKind::Unsupported, rule));

        let version = demand("redis_version")?;
        let parsed = major_minor(version).ok_or_else(|| missing("a version"))?;
        if parsed < (6, 2) {
            return refuse(format!(
                "the server is Redis {version}: at least 6.2 is needed"
            ));
        }
        if demand("role")? != "master" {
            return refuse(
                "the server is a replica: locks live on primaries alone, since a replica may lag \
                 behind or forget"
                    .into(),
            );
        }
        if field("cluster_enabled") == Some("1") {
            return refuse(
                "the server is a node of a Redis Cluster: members are independent, plain servers"
                    .into(),
            );
        }
        Ok(Self {
            run_id: demand("run_id")?.to_owned(),
            set_nx_get: parsed >= (7, 0),
        })
    }
}

fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(version: &str, role: &str, cluster: &str) -> String {
        format!(
            "# Server\r\nredis_version:{version}\r\nrun_id:abc\r\n\
             # Replication\r\nrole:{role}\r\n# Cluster\r\ncluster_enabled:{cluster}\r\n"
        )
    }

    #[test]
    fn only_independent_primaries_of_a_known_age_are_members() {
        let facts = |version| ServerFacts::read(&info(version, "master", "0")).unwrap();
        assert!(facts("7.0.15").set_nx_get);
        assert!(facts("255.255.255").set_nx_get);
        assert!(!facts("6.2.14").set_nx_get);
        assert_eq!(facts("7.2.4").run_id, "abc");
        for (info, rule) in [
            (info("6.0.16", "master", "0"), "at least 6.2"),
            (info("7.0.15", "slave", "0"), "primaries alone"),
            (info("7.0.15", "master", "1"), "node of a Redis Cluster"),
        ] {
            let error = ServerFacts::read(&info).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(rule), "{error}");
        }
        let error = ServerFacts::read("redis_version:x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Garbled);
    }
}
