use std::time::Duration;

use leasehold::member::MemberId;
use leasehold::{Error, ErrorKind};
use leasehold_redis::{Examination, MissingRight, Need, ServerFacts, Transport};

use super::super::server::{MemberContext, judge, of_unreachable};
use super::well;
use crate::output::expect_finding::{all_green, expect, green, red, refused, yellow};
use crate::output::finding::Finding;
use crate::output::finding::Verdict::{Green, Red, Yellow};

fn context(is_quorum: bool) -> MemberContext {
    let penalty = Duration::from_secs(61);
    MemberContext { is_quorum, penalty }
}

fn judged(spoil: impl FnOnce(&mut Examination)) -> Vec<Finding> {
    let mut found = well("run");
    spoil(&mut found);
    judge(&found, context(true))
}

fn with_facts(spoil: impl FnOnce(&mut ServerFacts)) -> Vec<Finding> {
    judged(|it| spoil(it.server.as_mut().unwrap()))
}

#[test]
fn a_server_that_is_well_is_green() {
    all_green(&judged(|_| {}));
    all_green(&judged(|it| it.transport = Transport::ThisMachine));
}

#[test]
fn unreachable_server_is_red_with_a_remedy() {
    // It was replaced, and its id is an address where no server may be started.
    let id = MemberId::new("a:1").at("b:1");
    for (kind, part) in [
        (ErrorKind::Unreachable, "start the server at b:1, or"),
        (ErrorKind::Refused, "user and password"),
        (ErrorKind::InvalidResponse, "address of a Redis"),
        (ErrorKind::InvalidInput, "fix the address"),
    ] {
        red(
            &of_unreachable(&id, true, &Error::new(kind, "failed")),
            "reachable",
            part,
        );
    }
    let error = Error::new(ErrorKind::Unreachable, "failed");
    let of = |is_quorum| format!("{:?}", of_unreachable(&id, is_quorum, &error));
    assert!(of(true).contains("members replace"));
    assert!(
        !of(false).contains("members"),
        "a single server is no member"
    );
}

#[test]
fn rule_of_a_remedy_is_quoted_for_a_shell() {
    let rule = |rule: &str| {
        judged(|it| {
            let rule = rule.to_owned();
            it.missing_rights = vec![MissingRight {
                rule,
                need: Need::Locks,
            }];
        })
    };
    for (given, quoted) in [
        ("+zadd", "-> ACL SETUSER ann +zadd."),
        ("+config|get", "ann '+config|get'."),
        ("~leasehold:* &inbox:*", "ann '~leasehold:*' '&inbox:*'."),
        ("~it's", r"ann '~it'\''s'."),
    ] {
        red(&rule(given), "rights", quoted);
    }
}

#[test]
fn a_plain_connection_over_a_network_is_yellow() {
    let findings = judged(|it| it.transport = Transport::PlainNetwork);
    yellow(&findings, "encryption", "rediss://");
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
        let findings = with_facts(|it| it.version = version.into());
        expect(&findings, "version", verdict, version);
    }
}

#[test]
fn who_is_no_plain_primary_is_red() {
    red(
        &with_facts(|it| it.is_primary = false),
        "role",
        "REPLICAOF NO ONE",
    );
    red(
        &with_facts(|it| it.is_cluster_node = true),
        "role",
        "cluster-enabled no",
    );
}

#[test]
fn eviction_is_red_where_there_is_a_limit() {
    for (bytes, policy, verdict, part) in [
        (0, "allkeys-lru", Green, ""),
        (1 << 30, "noeviction", Green, ""),
        (
            1 << 30,
            "volatile-lru",
            Red,
            "-> CONFIG SET maxmemory-policy noeviction.",
        ),
    ] {
        let findings =
            with_facts(|it| (it.max_memory, it.eviction_policy) = (bytes, policy.into()));
        expect(&findings, "eviction", verdict, part);
    }
    let accepted = judged(|it| {
        it.accepts_eviction = true;
        let facts = it.server.as_mut().unwrap();
        (facts.max_memory, facts.eviction_policy) = (1 << 30, "allkeys-lru".into());
    });
    expect(&accepted, "eviction", Yellow, "evicting=accept");
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
        red(&findings, "writes", said);
        red(&findings, "writes", part);
    }
}

#[test]
fn undurable_server_is_yellow_with_its_differing_settings() {
    let forget = |it: &mut Examination| {
        it.status.as_mut().unwrap().durable = false;
        it.persistence.as_mut().unwrap().append_fsync = "everysec".into();
    };
    let findings = judged(forget);
    let restart = "restart it: it is durable from then on";
    let settings = format!("-> CONFIG SET appendfsync always; CONFIG REWRITE; {restart}.");
    yellow(&findings, "persistence", &settings);
    yellow(&findings, "persistence", "no vote for 1m 1s");
    let mut alone = well("run");
    forget(&mut alone);
    yellow(
        &judge(&alone, context(false)),
        "persistence",
        "granted twice",
    );
}

type Change = fn(&mut Examination);

#[test]
fn right_settings_are_not_enough_to_be_durable() {
    let cases: [(Change, &str, &str); 4] = [
        (
            |it| it.persistence.as_mut().unwrap().last_write_was_ok = false,
            "",
            "disk",
        ),
        (
            |it| it.persistence.as_mut().unwrap().replicas = 1,
            "a replica that lags behind",
            "-> REPLICAOF NO ONE",
        ),
        (
            |it| it.status.as_mut().unwrap().was_replica = true,
            "was a replica in this run",
            "-> restart it",
        ),
        (|_| {}, "but not since it started", ""),
    ];
    for (change, found, remedy) in cases {
        let findings = judged(|it| {
            it.status.as_mut().unwrap().durable = false;
            change(it);
        });
        yellow(&findings, "persistence", found);
        yellow(&findings, "persistence", remedy);
    }
}

#[test]
fn damaged_record_leaves_settings_correct() {
    let damaged = |append_only: &str| {
        judged(|it| {
            it.status = Err(Error::new(
                ErrorKind::Corrupt,
                "its member record is damaged",
            ));
            it.persistence.as_mut().unwrap().append_only = append_only.into();
        })
    };
    green(&damaged("yes"), "persistence", "");
    let start = "-> CONFIG SET appendonly yes; CONFIG REWRITE; restart it";
    yellow(&damaged("no"), "persistence", start);
}

#[test]
fn unknown_command_is_not_a_missing_right() {
    let text = "the server lacks a command: unknown command 'CONFIG'";
    let unsupported = Error::new(ErrorKind::Unsupported, text);
    for (error, advice) in [
        (unsupported, "operator of the server"),
        (refused(), "`rights`"),
    ] {
        let findings = judged(|it| it.persistence = Err(error));
        yellow(&findings, "persistence", advice);
    }
}

#[test]
fn missing_right_is_judged_by_its_need() {
    for (needs, is_quorum, verdict, part) in [
        (
            &[Need::Waking, Need::Locks][..],
            true,
            Red,
            "-> ACL SETUSER ann +waking +locks.",
        ),
        (&[Need::Sets], true, Red, "-> ACL SETUSER ann +sets."),
        (&[Need::Sets], false, Yellow, ""),
        (&[Need::Waking], true, Yellow, ""),
        (&[Need::Looking], true, Yellow, ""),
        (&[Need::Durability], true, Yellow, ""),
    ] {
        let right = |need: &Need| MissingRight {
            rule: format!("+{need:?}").to_lowercase(),
            need: *need,
        };
        let mut found = well("run");
        found.missing_rights = needs.iter().map(right).collect();
        expect(&judge(&found, context(is_quorum)), "rights", verdict, part);
    }
}

#[test]
fn forbidden_question_is_unknown_and_not_a_failure() {
    let findings = judged(|it| {
        (it.server, it.persistence) = (Err(refused()), Err(refused()));
        (it.keys, it.clock_offset) = (Err(refused()), None);
    });
    for check in ["version", "persistence", "keys"] {
        yellow(&findings, check, "unknown");
        yellow(&findings, check, "+x");
    }
}

#[test]
fn a_server_that_tells_nobody_anything_is_yellow() {
    yellow(&judged(|it| it.speaks_resp3 = false), "push", "");
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
        green(&findings, "keys", &said);
    }
}

#[test]
fn foreign_keys_are_yellow_damaged_records_red() {
    let hash = r#"the hash "cart" (Redisson"#;
    let list = r#"2 of type list, for example "cart""#;
    for (prefix, kind, count, found, remedy) in [
        ("", "hash", 1, hash, "add ?prefix="),
        ("app:", "list", 2, list, "another ?prefix="),
    ] {
        let findings = judged(|it| {
            it.prefix = prefix.into();
            let keys = it.keys.as_mut().unwrap();
            keys.foreign.insert(kind.into(), (count, "cart".into()));
        });
        yellow(&findings, "keys", found);
        yellow(&findings, "keys", remedy);
    }
    let damaged = judged(|it| {
        let record = ("leasehold:member_record".into(), "list".into());
        it.keys.as_mut().unwrap().damaged.push(record);
    });
    red(&damaged, "keys", r#"-> DEL "leasehold:member_record"."#);
}

#[test]
fn slow_round_trip_is_yellow_with_its_ttl() {
    let findings = judged(|it| it.round_trips = vec![Duration::from_millis(80); 9]);
    yellow(&findings, "round_trip", "below 1s 600ms");
}
