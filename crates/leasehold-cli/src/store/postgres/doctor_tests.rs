use std::time::Duration;

use leasehold_postgres::Examination;

use super::judge;
use crate::output::expect_finding::{all_green, expect_none, green, red, yellow};
use crate::output::finding::Finding;

fn judged(spoil: impl FnOnce(&mut Examination)) -> Vec<Finding> {
    let mut found = Examination::example();
    spoil(&mut found);
    judge(&found)
}

#[test]
fn a_server_that_is_well_is_green() {
    all_green(&judged(|_| {}));
    all_green(&judged(|it| it.synchronous_standbys = "second".into()));
    all_green(&judged(|it| (it.is_encrypted, it.is_local) = (false, true)));
    green(
        &judged(|it| it.clock_offset = -5_000_000),
        "clock",
        "behind",
    );
}

#[test]
fn what_prevents_locks_is_red() {
    red(
        &judged(|it| it.version = "13.12 (Debian 13.12-1)".into()),
        "version",
        "version 14.0",
    );
    red(&judged(|it| it.is_standby = true), "role", "primary");
    red(&judged(|it| it.is_standby = true), "role", "standby");
    red(&judged(|it| it.is_read_only = true), "role", "read-only");
    red(
        &judged(|it| it.schema_version = None),
        "schema",
        "leasehold init",
    );
    red(
        &judged(|it| it.schema_version = Some(0)),
        "schema",
        "leasehold init",
    );
    red(
        &judged(|it| it.schema_version = Some(99)),
        "schema",
        "update leasehold",
    );
    red(
        &judged(|it| it.has_session_settings = false),
        "session",
        "pooler",
    );
    red(&judged(|it| it.fsync = false), "durability", "fsync = on");
}

#[test]
fn missing_rights_are_printed_as_statements() {
    let lacks = judged(|it| {
        it.missing_grants = vec!["GRANT USAGE ON SCHEMA \"s\" TO \"u\"".into()];
        it.schema_version = None;
    });
    red(&lacks, "rights", "GRANT USAGE ON SCHEMA");
    red(&lacks, "schema", "see the check `rights`");
    expect_none(&judged(|it| it.schema_version = None), "rights");
}

#[test]
fn what_a_failover_or_a_network_may_spoil_is_yellow() {
    yellow(
        &judged(|it| it.synchronous_standbys.clear()),
        "failover",
        "may grant them again",
    );
    yellow(
        &judged(|it| it.standbys = 0),
        "failover",
        "no standby follows",
    );
    green(
        &judged(|it| {
            it.standbys = 0;
            it.synchronous_standbys.clear();
        }),
        "failover",
        "no standby",
    );
    yellow(
        &judged(|it| it.is_encrypted = false),
        "encryption",
        "sslmode=require",
    );
    yellow(
        &judged(|it| it.connections_left.0 = -1),
        "connections",
        "0 of 100",
    );
    yellow(
        &judged(|it| it.clock_offset = 90_000_000),
        "clock",
        "1m 30s ahead",
    );
    yellow(
        &judged(|it| it.encoding = "LATIN1".into()),
        "encoding",
        "UTF8",
    );
    let slow = vec![Duration::from_millis(300)];
    yellow(&judged(|it| it.round_trips = slow), "round_trip", "300");
}
