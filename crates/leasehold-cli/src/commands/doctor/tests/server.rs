use std::time::Duration;

use leasehold::{Error, ErrorKind};
use leasehold_redis::{Examination, MissingRight, Need, Transport};

use super::{all_green, finding, refused, remedy, well};
use crate::commands::doctor::finding::Verdict::{Green, Red, Yellow};
use crate::commands::doctor::finding::{Finding, Verdict};
use crate::commands::doctor::server::{Place, judge, of_unreachable};

fn place(is_quorum: bool) -> Place {
    let penalty = Duration::from_secs(61);
    Place { is_quorum, penalty }
}

fn judged(spoil: impl FnOnce(&mut Examination)) -> Vec<Finding> {
    let mut found = well("run");
    spoil(&mut found);
    judge(&found, place(true))
}

#[test]
fn a_server_that_is_well_is_green() {
    all_green(&judged(|_| {}));
    let local = judged(|it| it.transport = Transport::ThisMachine);
    all_green(&local);
}

#[test]
fn unreachable_server_is_red_with_a_remedy() {
    for (kind, part) in [
        (ErrorKind::Unreachable, "start the server"),
        (ErrorKind::Refused, "user and password"),
        (ErrorKind::InvalidResponse, "address of a Redis"),
        (ErrorKind::InvalidInput, "fix the address"),
    ] {
        let findings = of_unreachable(&Error::new(kind, "failed"));
        let remedy = remedy(&findings, "reachable", Red);
        assert!(remedy.contains(part), "{remedy}");
    }
}

#[test]
fn a_plain_connection_over_a_network_is_yellow() {
    let findings = judged(|it| it.transport = Transport::PlainNetwork);
    assert!(remedy(&findings, "encryption", Yellow).contains("rediss://"));
}

#[test]
fn versions_are_told_apart() {
    for (version, verdict) in [
        ("6.0.16", Red),
        ("x", Red),
        ("6.2.14", Yellow),
        ("7.0.0", Green),
        ("255.255.255", Green),
    ] {
        let findings = judged(|it| it.server.as_mut().unwrap().version = version.into());
        assert_eq!(finding(&findings, "version", verdict).found, version);
    }
}

#[test]
fn who_is_no_plain_primary_is_red() {
    let replica = judged(|it| it.server.as_mut().unwrap().is_primary = false);
    assert!(remedy(&replica, "role", Red).contains("REPLICAOF NO ONE"));
    let node = judged(|it| it.server.as_mut().unwrap().is_cluster_node = true);
    assert!(remedy(&node, "role", Red).contains("cluster-enabled no"));
}

#[test]
fn eviction_is_red_where_there_is_a_limit() {
    let with = |bytes: u64, policy: &str| {
        judged(|it| {
            let facts = it.server.as_mut().unwrap();
            facts.max_memory = bytes;
            facts.eviction_policy = policy.into();
        })
    };
    finding(&with(0, "allkeys-lru"), "eviction", Green);
    finding(&with(1 << 30, "noeviction"), "eviction", Green);
    let remedy = remedy(&with(1 << 30, "volatile-lru"), "eviction", Red);
    assert_eq!(remedy, "CONFIG SET maxmemory-policy noeviction");
}

#[test]
fn a_server_that_takes_no_writes_is_red() {
    for (said, part) in [
        ("OOM command not allowed", "maxmemory"),
        ("MISCONF Redis is configured", "disk"),
        ("READONLY You can't write", "REPLICAOF"),
        ("ERR unknown command 'EVALSHA'", "rename-command"),
        ("NOREPLICAS Not enough", "the cause that it names"),
    ] {
        let findings = judged(|it| it.refuses_locks = Some(said.into()));
        assert_eq!(finding(&findings, "writes", Red).found, said);
        assert!(remedy(&findings, "writes", Red).contains(part), "{said}");
    }
}

#[test]
fn undurable_server_is_yellow_with_its_differing_settings() {
    let forget = |it: &mut Examination| {
        it.status.as_mut().unwrap().durable = false;
        it.persistence.as_mut().unwrap().append_fsync = "everysec".into();
    };
    let findings = judged(forget);
    let settings = remedy(&findings, "persistence", Yellow);
    let restart = "restart it: it is durable from then on";
    let expected = format!("CONFIG SET appendfsync always; CONFIG REWRITE; {restart}");
    assert_eq!(settings, expected);
    let why = finding(&findings, "persistence", Yellow)
        .advice
        .clone()
        .unwrap()
        .why;
    assert!(why.contains("no vote for 1m 1s"), "{why}");
    let mut alone = well("run");
    forget(&mut alone);
    let why = judge(&alone, place(false));
    let why = finding(&why, "persistence", Yellow)
        .advice
        .clone()
        .unwrap()
        .why;
    assert!(why.contains("granted twice"), "{why}");
    let findings = judged(|it| {
        it.status.as_mut().unwrap().durable = false;
        it.persistence.as_mut().unwrap().last_write_was_ok = false;
    });
    assert!(remedy(&findings, "persistence", Yellow).contains("disk"));
}

#[test]
fn right_settings_are_not_enough_to_be_durable() {
    let with = |change: fn(&mut Examination)| {
        let findings = judged(|it| {
            it.status.as_mut().unwrap().durable = false;
            change(it);
        });
        let found = finding(&findings, "persistence", Yellow).found.clone();
        (found, remedy(&findings, "persistence", Yellow))
    };
    let (found, remedy) = with(|it| it.persistence.as_mut().unwrap().replicas = 1);
    assert!(found.contains("a replica that lags behind"), "{found}");
    assert!(remedy.starts_with("REPLICAOF NO ONE"), "{remedy}");
    let (found, remedy) = with(|it| it.status.as_mut().unwrap().was_replica = true);
    assert!(found.contains("was a replica in this run"), "{found}");
    assert!(remedy.starts_with("restart it"), "{remedy}");
    let (found, _) = with(|_| {});
    assert!(found.contains("but not since it started"), "{found}");
}

#[test]
fn damaged_record_leaves_settings_correct() {
    let damaged = |it: &mut Examination| {
        it.status = Err(Error::new(
            ErrorKind::Corrupt,
            "its member record is damaged",
        ));
    };
    finding(&judged(damaged), "persistence", Green);
    let findings = judged(|it| {
        damaged(it);
        it.persistence.as_mut().unwrap().append_only = "no".into();
    });
    let settings = remedy(&findings, "persistence", Yellow);
    let start = "CONFIG SET appendonly yes; CONFIG REWRITE; restart it";
    assert!(settings.starts_with(start), "{settings}");
}

#[test]
fn unknown_command_is_not_a_missing_right() {
    let text = "the server lacks a command: unknown command 'CONFIG'";
    let findings = judged(|it| it.persistence = Err(Error::new(ErrorKind::Unsupported, text)));
    let advice = remedy(&findings, "persistence", Yellow);
    assert!(advice.contains("operator of the server"), "{advice}");
    let findings = judged(|it| it.persistence = Err(refused()));
    let advice = remedy(&findings, "persistence", Yellow);
    assert!(advice.contains("`rights`"), "{advice}");
}

#[test]
fn missing_right_is_judged_by_its_need() {
    let lacking = |needs: &[Need], is_quorum: bool| {
        let mut found = well("run");
        found.missing_rights = needs
            .iter()
            .map(|need| MissingRight {
                rule: format!("+{need:?}").to_lowercase(),
                need: *need,
            })
            .collect();
        judge(&found, place(is_quorum))
    };
    let check = |needs: &[Need], is_quorum, verdict: Verdict| {
        remedy(&lacking(needs, is_quorum), "rights", verdict)
    };
    let both = check(&[Need::Waking, Need::Locks], true, Red);
    assert_eq!(both, "ACL SETUSER ann +waking +locks");
    assert_eq!(check(&[Need::Sets], true, Red), "ACL SETUSER ann +sets");
    check(&[Need::Sets], false, Yellow);
    for need in [Need::Waking, Need::Looking, Need::Durability] {
        check(&[need], true, Yellow);
    }
}

#[test]
fn forbidden_question_is_unknown_and_not_a_failure() {
    let findings = judged(|it| {
        it.server = Err(refused());
        it.persistence = Err(refused());
        it.keys = Err(refused());
        it.clock_offset = None;
    });
    for check in ["version", "persistence", "keys"] {
        let found = &finding(&findings, check, Yellow).found;
        assert!(found.contains("unknown") && found.contains("+x"), "{found}");
    }
}

#[test]
fn a_server_that_tells_nobody_anything_is_yellow() {
    let findings = judged(|it| it.speaks_resp3 = false);
    finding(&findings, "push", Yellow);
}

#[test]
fn the_number_of_keys_is_in_the_finding() {
    for (seen, is_complete, said) in [
        (0, true, "0 keys"),
        (1, true, "1 key"),
        (7, true, "7 keys"),
        (8_192, false, "a sample of 8192 keys"),
    ] {
        let findings = judged(|it| {
            let keys = it.keys.as_mut().unwrap();
            (keys.seen, keys.is_complete) = (seen, is_complete);
        });
        let said = format!("{said}, no other lock library's found");
        assert_eq!(finding(&findings, "keys", Green).found, said);
    }
}

#[test]
fn foreign_keys_are_yellow_damaged_records_red() {
    let with = |prefix: &str, kind: &str, count: usize| {
        judged(|it| {
            it.prefix = prefix.into();
            let keys = it.keys.as_mut().unwrap();
            keys.foreign.insert(kind.into(), (count, "cart".into()));
        })
    };
    let findings = with("", "hash", 1);
    let found = &finding(&findings, "keys", Yellow).found;
    assert!(found.contains(r#"the hash "cart" (Redisson"#), "{found}");
    assert!(remedy(&findings, "keys", Yellow).contains("add ?prefix="));
    let findings = with("app:", "list", 2);
    let found = &finding(&findings, "keys", Yellow).found;
    assert!(
        found.contains(r#"2 of type list, for example "cart""#),
        "{found}"
    );
    assert!(remedy(&findings, "keys", Yellow).contains("another ?prefix="));
    let damaged = judged(|it| {
        let keys = it.keys.as_mut().unwrap();
        keys.damaged
            .push(("leasehold:member_record".into(), "list".into()));
    });
    assert_eq!(
        remedy(&damaged, "keys", Red),
        r#"DEL "leasehold:member_record""#
    );
}

#[test]
fn slow_round_trip_is_yellow_with_its_ttl() {
    let findings = judged(|it| it.round_trips = vec![Duration::from_millis(80); 9]);
    let advice = finding(&findings, "round_trip", Yellow).advice.clone();
    let why = advice.unwrap().why;
    assert!(why.contains("below 2s"), "{why}");
}
