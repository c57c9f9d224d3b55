//! The status of a server.

use std::time::Duration;

use leasehold::Error;
use leasehold::member::{MemberStatus, RunId};

use super::command::RIGHTS;
use super::failure::{Rights, invalid_response, refused};
use super::info::Info;
use super::member_record::{self, EPOCH};
use super::names::MEMBER_RECORD;
use super::sample::read_time;
use crate::resp::{CommandWriter, Value};

pub(super) const COMMANDS: usize = Info::SECTIONS.len() + 4;

/// Asks for the status.
pub(crate) fn write(out: &mut CommandWriter<'_>) {
    Info::write(&Info::SECTIONS, out);
    // A single pattern, since servers before Redis 7.0 accept one name at a time.
    out.command("CONFIG").arg("GET").arg("*append*");
    out.command("HGETALL").arg(MEMBER_RECORD);
    // Only to find out whether the user may read the epoch, as each sample does.
    out.command("HGET").arg(MEMBER_RECORD).arg(EPOCH);
    out.command("TIME");
}

/// Reads the answers to [`write`].
pub(crate) fn read(answers: &[Value], user: &str) -> Result<MemberStatus, Error> {
    let info = read_info(answers, user)?;
    let [.., config, record, epoch, time] = answers else {
        return Err(invalid_response("INFO"));
    };
    if let Value::Error { code, message } = time {
        return Err(refused(code, message, user, Rights("+time")));
    }
    let clock = read_time(time).ok_or_else(|| invalid_response("TIME"))?;
    let uptime = info.demand("uptime_in_seconds")?;
    let uptime = uptime.parse().map_err(|_| invalid_response("INFO"))?;
    let run = RunId::new(info.demand("run_id")?);
    let mut status = MemberStatus::new(run, clock, Duration::from_secs(uptime));
    status.was_replica = !info.field("master_replid2").is_some_and(is_unset);
    status.durable = is_durable(&info, config) && !status.was_replica;
    status.unfit = info.unfit();
    match unreadable(&[record, epoch], user) {
        None => status.member_record = member_record::read(record, user)?,
        Some(reason) => status.unfit = status.unfit.or(Some(reason)),
    }
    Ok(status)
}

/// Reads the answers to [`write`] that are about `INFO`.
pub(crate) fn read_info(answers: &[Value], user: &str) -> Result<Info, Error> {
    match answers.split_at_checked(Info::SECTIONS.len()) {
        Some((sections, _)) => Info::read(sections, user),
        None => Err(invalid_response("INFO")),
    }
}

/// Returns the configuration among the answers to [`write`].
pub(crate) fn config_of(answers: &[Value]) -> Option<&Value> {
    answers.get(Info::SECTIONS.len())
}

/// Returns a setting from the answer to `CONFIG GET`.
pub(crate) fn setting<'v>(config: &'v Value, name: &str) -> Option<&'v str> {
    let pairs = config.as_pairs()?.into_iter();
    let mut pairs = pairs.filter(|(key, _)| key.as_text() == Some(name));
    pairs.next().and_then(|(_, value)| value.as_text())
}

/// Returns why the user may not read the member record. Such a user can take locks, but not in a quorum.
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

/// Whether everything that the server acknowledges is on its disk, and no lagging replica can take its
/// place. What is unknown counts against it.
fn is_durable(info: &Info, config: &Value) -> bool {
    let says = |name: &str, value: &str| setting(config, name) == Some(value);
    says("appendonly", "yes")
        && says("appendfsync", "always")
        && says("no-appendfsync-on-rewrite", "no")
        && info.field("aof_enabled") == Some("1")
        && info.field("aof_last_write_status") == Some("ok")
        && info.field("connected_slaves") == Some("0")
}

/// Whether a replication id belongs to no server. A primary has a second id if it was a replica.
fn is_unset(id: &str) -> bool {
    id.bytes().all(|digit| digit == b'0')
}

#[cfg(test)]
mod tests {
    use leasehold::ErrorKind;

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

    fn status(info: &str, config: &[&str], record: Value) -> Result<MemberStatus, Error> {
        let empty = Value::Bytes(Vec::new());
        let info = Value::Bytes(info.as_bytes().to_vec());
        let time = texts(&["1763637400", "7"]);
        let infos = [info, empty.clone(), empty.clone(), empty.clone(), empty];
        let rest = [texts(config), record, Value::Null, time];
        read(&[infos.as_slice(), &rest].concat(), "ann")
    }

    fn with(info: &str, config: &[&str]) -> MemberStatus {
        status(info, config, texts(&[])).unwrap()
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
            let status = with(&INFO.replace(is, other), &DURABLE);
            assert!(!status.durable, "{other}");
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
        let unfit = status(INFO, &DURABLE, refused).unwrap().unfit.unwrap();
        assert!(unfit.contains("+hgetall"), "{unfit}");
    }

    #[test]
    fn incomplete_info_is_no_status() {
        for name in ["run_id", "uptime_in_seconds"] {
            let info = INFO.replace(name, "x");
            let error = status(&info, &[], texts(&[])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidResponse);
        }
    }
}
