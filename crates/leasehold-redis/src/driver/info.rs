use leasehold::{Error, ErrorKind, RunId};

use crate::connection::{Refusal, Rights};
use crate::resp::Value;

/// What a server says about itself that decides whether it can be a member.
#[derive(Debug)]
pub(super) struct ServerInfo {
    /// Drawn each time the server starts. A direct connection never outlives it.
    pub(super) run: RunId,
    version: String,
    role: String,
    in_cluster: bool,
}

/// The oldest version that the scripts run on.
const OLDEST: (u32, u32) = (6, 2);

impl ServerInfo {
    /// The sections of `INFO`, asked one by one, since servers before Redis 7.0 take one at a time.
    pub(super) const SECTIONS: [&str; 3] = ["server", "replication", "cluster"];

    /// Reads the replies.
    pub(super) fn read(replies: &[Value], user: &str) -> Result<Self, Error> {
        let mut text = String::new();
        for reply in replies {
            match (reply, reply.as_text()) {
                (Value::Error { code, message }, _) => {
                    return Err(Refusal::new(code, message).to_error(user, Rights("+info")));
                }
                (_, Some(section)) => text.push_str(section),
                (_, None) => return Err(missing("text")),
            }
        }
        let field = |name: &str| {
            let mut fields = text.lines().filter_map(|line| line.split_once(':'));
            let field = fields.find(|(field, _)| *field == name);
            field.map(|(_, value)| value.trim())
        };
        let demand = |name: &str| field(name).ok_or_else(|| missing(name));
        Ok(Self {
            run: RunId::new(demand("run_id")?),
            version: demand("redis_version")?.to_owned(),
            role: demand("role")?.to_owned(),
            in_cluster: field("cluster_enabled") == Some("1"),
        })
    }

    /// Refuses a server that is too old or is no independent primary.
    pub(super) fn check(&self) -> Result<(), Error> {
        let refuse = |rule: String| Err(Error::new(ErrorKind::Unsupported, rule));
        let mut parts = self.version.split('.').map(|part| part.parse::<u32>().ok());
        let (Some(Some(major)), Some(Some(minor))) = (parts.next(), parts.next()) else {
            return Err(missing("a version"));
        };
        if (major, minor) < OLDEST {
            let version = &self.version;
            return refuse(format!(
                "the server is Redis {version}: at least 6.2 is needed"
            ));
        }
        if self.role != "master" {
            let rule = "the server is a replica: locks live on primaries alone, since a replica may \
                        lag behind or forget";
            return refuse(rule.into());
        }
        if self.in_cluster {
            let rule =
                "the server is a node of a Redis Cluster: members are independent, plain servers";
            return refuse(rule.into());
        }
        Ok(())
    }
}

fn missing(name: &str) -> Error {
    let message = format!("INFO does not say {name}: is it a Redis server?");
    Error::new(ErrorKind::Garbled, message)
}
