//! The status of a server.

use std::time::Duration;

use leasehold::{Error, ErrorKind, Presence, RunId};
use leasehold_quorum::Reply;

use super::codec::{Codec, RIGHTS};
use super::failure::{Rights, garbled, refused};
use super::member_record::{self, MARK};
use super::names::MEMBER_RECORD;
use super::sample::read_time;
use crate::resp::{CommandWriter, Value};

/// The sections of INFO that locks depend on. Servers before Redis 7.0 take one at a time.
const SECTIONS: [&str; 5] = ["server", "replication", "cluster", "memory", "persistence"];

pub(super) const COMMANDS: usize = SECTIONS.len() + 4;

pub(super) fn write(out: &mut CommandWriter<'_>) {
    for section in SECTIONS {
        out.command("INFO").arg(section);
    }
    // One pattern: servers before Redis 7.0 take one name at a time.
    out.command("CONFIG").arg("GET").arg("*append*");
    out.command("HGETALL").arg(MEMBER_RECORD);
    // Only to see whether the user may read the mark, as each sample does.
    out.command("HGET").arg(MEMBER_RECORD).arg(MARK);
    out.command("TIME");
}

pub(super) fn read(codec: &Codec, answers: &[Value]) -> Result<Reply, Error> {
    let user = codec.user.as_str();
    let (infos, rest) = answers
        .split_at_checked(SECTIONS.len())
        .ok_or_else(|| garbled("INFO"))?;
    let [config, record, mark, time] = rest else {
        return Err(garbled("INFO"));
    };
    let info = Info::read(infos, user)?;
    if let Value::Error { code, message } = time {
        return Err(refused(code, message, user, Rights("+time")));
    }
    let clock = read_time(time).ok_or_else(|| garbled("TIME"))?;
    let uptime = info.demand("uptime_in_seconds")?;
    let uptime = uptime.parse().map_err(|_| garbled("INFO"))?;
    let run = RunId::new(info.demand("run_id")?);
    let mut presence = Presence::new(run, clock, Duration::from_secs(uptime));
    presence.was_replica = !info.field("master_replid2").is_some_and(is_unset);
    presence.durable = is_durable(&info, config) && !presence.was_replica;
    presence.unfit = info.unfit();
    match unreadable(&[record, mark], user) {
        None => presence.card = member_record::read(record, user)?,
        Some(reason) => presence.unfit = presence.unfit.or(Some(reason)),
    }
    Ok(Reply::Status(Box::new(presence)))
}

/// Why the user may not read the member record. Such a user can take locks, but not in a quorum.
fn unreadable(answers: &[&Value], user: &str) -> Option<String> {
    answers.iter().find_map(|answer| match answer {
        Value::Error { code, message } if code == "NOPERM" => {
            let why = refused(code, message, user, RIGHTS);
            Some(format!(
                "its member record cannot be read: {}",
                why.reason()
            ))
        }
        _ => None,
    })
}

/// Whether all that the server acknowledges is on its disk, and no replica that lags behind can take
/// its place. What is not known counts against it.
fn is_durable(info: &Info, config: &Value) -> bool {
    let pairs = config.as_pairs().unwrap_or_default();
    let says = |name: &str, value: &str| {
        let is_name = |(key, _): &&(&Value, &Value)| key.as_text() == Some(name);
        let pair = pairs.iter().find(is_name);
        pair.is_some_and(|(_, found)| found.as_text() == Some(value))
    };
    says("appendonly", "yes")
        && says("appendfsync", "always")
        && says("no-appendfsync-on-rewrite", "no")
        && info.field("aof_enabled") == Some("1")
        && info.field("aof_last_write_status") == Some("ok")
        && info.field("connected_slaves") == Some("0")
}

/// Whether a replication id is that of no server. A primary has a second one if it was a replica.
fn is_unset(id: &str) -> bool {
    id.bytes().all(|digit| digit == b'0')
}

/// What a server says about itself.
struct Info(String);

impl Info {
    fn read(answers: &[Value], user: &str) -> Result<Self, Error> {
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
                        return Err(Error::new(ErrorKind::Garbled, rule));
                    }
                },
            }
        }
        Ok(Self(info))
    }

    fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.0.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = fields.find(|(field, _)| *field == name)?;
        Some(value.trim())
    }

    fn demand(&self, name: &str) -> Result<&str, Error> {
        self.field(name).ok_or_else(|| {
            let message = format!("INFO does not say {name}: is it a Redis server?");
            Error::new(ErrorKind::Garbled, message)
        })
    }

    /// Why the server can be no member, if so.
    fn unfit(&self) -> Option<String> {
        let role = self.foreign_role().map(str::to_owned);
        role.or_else(|| self.evicts())
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

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "redis_version:7.0.15\r\nrun_id:abc\r\nuptime_in_seconds:7\r\n\
        role:master\r\ncluster_enabled:0\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n\
        aof_enabled:1\r\naof_last_write_status:ok\r\n\
        connected_slaves:0\r\nmaster_replid2:0000000000000000000000000000000000000000\r\n";

    const DURABLE: [&str; 6] = [
        "appendonly",
        "yes",
        "appendfsync",
        "always",
        "no-appendfsync-on-rewrite",
        "no",
    ];

    fn texts(texts: &[&str]) -> Value {
        let text = |text: &&str| Value::Bytes(text.as_bytes().to_vec());
        Value::Array(texts.iter().map(text).collect())
    }

    fn presence(info: &str, config: &[&str], record: Value) -> Result<Presence, Error> {
        let codec = Codec {
            prefix: String::new(),
            user: "ann".into(),
            client: "0123456789abcdef".parse().unwrap(),
            foreign_gap: Duration::ZERO,
        };
        let empty = Value::Bytes(Vec::new());
        let info = Value::Bytes(info.as_bytes().to_vec());
        let time = texts(&["1763637400", "7"]);
        let infos = [info, empty.clone(), empty.clone(), empty.clone(), empty];
        let rest = [texts(config), record, Value::Null, time];
        match read(&codec, &[infos.as_slice(), &rest].concat())? {
            Reply::Status(presence) => Ok(*presence),
            other => panic!("{other:?}"),
        }
    }

    fn with(info: &str, config: &[&str]) -> Presence {
        presence(info, config, texts(&[])).unwrap()
    }

    #[test]
    fn durable_is_what_certainly_is() {
        assert!(with(INFO, &DURABLE).durable);
        for (is, other) in [
            ("status:ok", "status:err"),
            ("aof_enabled:1", ""),
            ("slaves:0", "slaves:1"),
            ("slaves:0", ""),
            ("id2:0", "id2:1"),
        ] {
            let presence = with(&INFO.replace(is, other), &DURABLE);
            assert!(!presence.durable, "{other}");
        }
        for wrong in [1, 3, 5] {
            let mut config = DURABLE;
            config[wrong] = "everysec";
            assert!(!with(INFO, &config).durable);
        }
        assert!(!with(INFO, &DURABLE[..4]).durable);
    }

    #[test]
    fn unfit_server_says_why() {
        assert_eq!(with(INFO, &DURABLE).unfit, None);
        for (is, other, why) in [
            ("role:master", "role:slave", "primaries alone"),
            ("cluster_enabled:0", "cluster_enabled:1", "Redis Cluster"),
            (
                "maxmemory:0\r\nmaxmemory_policy:noeviction",
                "maxmemory:9\r\nmaxmemory_policy:allkeys-lru",
                "allkeys-lru",
            ),
        ] {
            let unfit = with(&INFO.replace(is, other), &DURABLE).unfit.unwrap();
            assert!(unfit.contains(why), "{unfit}");
        }
        let refused = Value::error("NOPERM", "no permissions to run the 'hgetall' command");
        let unfit = presence(INFO, &DURABLE, refused).unwrap().unfit.unwrap();
        assert!(unfit.contains("+hgetall"), "{unfit}");
    }

    #[test]
    fn incomplete_info_is_no_status() {
        for name in ["run_id", "uptime_in_seconds"] {
            let info = INFO.replace(name, "x");
            let error = presence(&info, &[], texts(&[])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Garbled);
        }
    }
}
