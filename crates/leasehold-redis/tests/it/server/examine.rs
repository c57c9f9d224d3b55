//! An examination of a server: what it finds, and that it changes nothing.

use leasehold::ErrorKind;
use leasehold::look::Pattern;
use leasehold_redis::{Examination, Need, RedisMember, Transport};
use leasehold_testkit::servers::{RedisServer, Reply};

use crate::support::{
    client, client_at, documented_rights, hold, member, member_record_edit, permit, set_user, share,
};

async fn look(member: &RedisMember) -> Examination {
    member.examine().await.unwrap()
}

fn rules(found: &Examination) -> Vec<&str> {
    let missing = found.missing_rights.iter();
    missing.map(|right| right.rule.as_str()).collect()
}

/// Returns the server's own counts of its changes, its scripts and its keys.
fn state(server: &RedisServer) -> Vec<String> {
    let lines = [
        "rdb_changes_since_last_save",
        "number_of_cached_scripts",
        "db0",
    ];
    let info = ["persistence", "memory", "keyspace"].map(|section| {
        match server.command(&["INFO", section]) {
            Reply::Bulk(text) => text,
            other => panic!("{other:?}"),
        }
    });
    let info = info.concat();
    let kept = info
        .lines()
        .filter(|line| lines.iter().any(|name| line.starts_with(name)));
    // The text after the numbers of keys is an estimate that the server makes when it has time.
    let kept = kept.map(|line| line.split(",avg_ttl").next().unwrap_or(line));
    let kept: Vec<String> = kept.map(Into::into).collect();
    assert_eq!(kept.len(), 3, "{kept:?}");
    kept
}

#[tokio::test]
async fn examination_changes_nothing() {
    let server = RedisServer::start();
    let member = member(&server);
    let edit = member_record_edit(&member.status().await.unwrap(), member.id().as_str());
    assert!(member.write_member_record(&edit).await.unwrap());
    let locks = client(&server);
    let _held = (
        hold(&locks, "deploy").await,
        share(&locks, "doc").await,
        permit(&locks, "workers", 3).await,
    );
    server.command(&["LPUSH", "jobs", "one"]);
    let before = state(&server);
    let found = look(&member).await;
    assert_eq!(state(&server), before);
    assert_eq!(rules(&found), [""; 0]);
    assert_eq!(found.refuses_locks, None);
    assert_eq!(found.transport, Transport::ThisMachine);
    assert_eq!((&*found.user, found.speaks_resp3), ("default", true));
    assert_eq!(
        found.status.unwrap().member_record.unwrap().data_generation,
        edit.data_generation
    );
    assert_eq!(found.round_trips.len(), 9);
    assert!(found.round_trips.is_sorted());
    assert!(found.clock_offset.unwrap().abs() < 2_000_000);
    let keys = found.keys.unwrap();
    assert_eq!((keys.strings, keys.is_complete), (3, true));
    assert_eq!(keys.foreign["list"], (1, "jobs".into()));
    assert!(keys.damaged.is_empty(), "{keys:?}");
    let facts = found.server.unwrap();
    assert!(facts.is_primary && !facts.is_cluster_node);
    assert_eq!(
        (facts.max_memory, &*facts.eviction_policy),
        (0, "noeviction")
    );
}

fn let_in(server: &RedisServer, rules: &[&str]) -> RedisMember {
    set_user(server, "ann", rules);
    let url = format!("redis://ann:secret@127.0.0.1:{}", server.port());
    RedisMember::new(url).unwrap()
}

#[tokio::test]
async fn each_missing_right_is_found_and_nothing_else() {
    let server = RedisServer::start();
    let rights = documented_rights("locks");
    let before = state_of_empty(&server);
    assert_eq!(rules(&look(&let_in(&server, &rights)).await), [""; 0]);
    for missing in rights
        .iter()
        .filter(|right| !["on", ">secret"].contains(right))
    {
        let others: Vec<&str> = rights.iter().filter(|it| *it != missing).copied().collect();
        let found = look(&let_in(&server, &others)).await;
        assert_eq!(rules(&found), [*missing]);
        assert!(!format!("{found:?}").contains("secret"));
        match *missing {
            "+info" => assert_eq!(found.server.unwrap_err().kind(), ErrorKind::Refused),
            "+config|get" => {
                let error = found.persistence.unwrap_err().to_string();
                assert!(error.contains("+config|get"), "{error}");
            }
            "+time" => assert_eq!(found.clock_offset, None),
            "+scan" => assert!(found.keys.unwrap_err().to_string().contains("+scan")),
            _ => assert!(found.server.is_ok() && found.status.is_ok()),
        }
    }
    let none = look(&let_in(&server, &["on", ">secret"])).await;
    assert_eq!(
        none.missing_rights.len(),
        rights.len() - 2,
        "all but `on` and the password"
    );
    assert_eq!(state_of_empty(&server), before);
}

/// Returns the counts of an empty server. It has no line about the keys of a database.
fn state_of_empty(server: &RedisServer) -> [Reply; 2] {
    let info = ["persistence", "memory"].map(|section| server.command(&["INFO", section]));
    info.map(|info| match info {
        Reply::Bulk(text) => {
            let kept = ["rdb_changes_since_last_save", "number_of_cached_scripts"];
            let mut lines = text.lines();
            let line = lines.find(|line| kept.iter().any(|name| line.starts_with(name)));
            Reply::Status(line.unwrap().to_owned())
        }
        other => panic!("{other:?}"),
    })
}

#[tokio::test]
async fn added_rights_are_enough() {
    let server = RedisServer::start();
    let url = |port| format!("redis://ann:secret@127.0.0.1:{port}?prefix=app:");
    let member = RedisMember::new(url(server.port())).unwrap();
    let mut rules = vec!["on".to_owned(), ">secret".to_owned()];
    for lacks in [true, false] {
        let given: Vec<&str> = rules.iter().map(String::as_str).collect();
        let_in(&server, &given);
        let found = look(&member).await;
        assert_eq!(!found.missing_rights.is_empty(), lacks, "{found:?}");
        rules.extend(found.missing_rights.into_iter().map(|right| right.rule));
    }
    for rule in ["~app:*", "~leasehold:*", "&leasehold:inbox:*", "+zadd"] {
        assert!(rules.iter().any(|it| it == rule), "{rule}: {rules:?}");
    }
    let locks = client_at(&url(server.port()));
    let _held = hold(&locks, "deploy").await;
    locks.list_locks(&Pattern::all(), 9).await.unwrap();
}

#[tokio::test]
async fn replica_and_cluster_node_are_examined() {
    let primary = RedisServer::start();
    let replica = RedisServer::builder().replica_of(&primary).start();
    let found = look(&member(&replica)).await;
    assert!(!found.server.unwrap().is_primary);
    assert!(found.refuses_locks.unwrap().starts_with("READONLY"));
    let node = RedisServer::builder().cluster().start();
    let found = look(&member(&node)).await;
    assert!(found.server.unwrap().is_cluster_node);
}

#[tokio::test]
async fn memory_and_files_are_reported() {
    let full = RedisServer::builder()
        .durable()
        .directive("maxmemory", "1")
        .directive("maxmemory-policy", "allkeys-lru")
        .start();
    let found = look(&member(&full)).await;
    let facts = found.server.unwrap();
    assert_eq!(
        (facts.max_memory, &*facts.eviction_policy),
        (1, "allkeys-lru")
    );
    assert!(found.refuses_locks.unwrap().starts_with("OOM"));
    assert!(found.status.unwrap().durable);
    let kept = found.persistence.unwrap();
    let words = [
        &kept.append_only,
        &kept.append_fsync,
        &kept.no_fsync_on_rewrite,
    ];
    assert_eq!(words, ["yes", "always", "no"]);
    assert!(kept.last_write_was_ok);
}

#[tokio::test]
async fn renamed_command_is_named() {
    let server = RedisServer::builder()
        .directive("rename-command", "EVALSHA \"\"")
        .start();
    let found = look(&member(&server)).await;
    let said = found.refuses_locks.as_ref().unwrap();
    assert!(said.starts_with("ERR unknown command 'EVALSHA'"), "{said}");
    assert_eq!(rules(&found), [""; 0], "no rule would bring it back");
}

#[tokio::test]
async fn only_keys_behind_the_prefix_count() {
    let server = RedisServer::start();
    for command in [
        &["HSET", "app:redisson", "uuid:1", "1"][..],
        &["HSET", "other", "f", "v"],
        &["SET", "app:lock", "token"],
        &["SET", "elsewhere", "v"],
        &["SET", "leasehold:fence:0:{x}:x", "7"],
    ] {
        server.command(command);
    }
    let url = format!("{}?prefix=app:", server.url());
    let found = look(&RedisMember::new(url).unwrap()).await;
    let keys = found.keys.unwrap();
    assert_eq!((keys.seen, keys.strings, keys.foreign.len()), (5, 1, 1));
    assert_eq!(keys.foreign["hash"], (1, "app:redisson".into()));
    let damaged = [("leasehold:fence:0:{x}:x".to_owned(), "string".to_owned())];
    assert_eq!(keys.damaged, damaged);
    for number in 0..9_000 {
        server.command(&["SET", &format!("filler{number}"), "v"]);
    }
    let keys = look(&member(&server)).await.keys.unwrap();
    assert!(!keys.is_complete && keys.seen < 9_005, "{}", keys.seen);
}

#[tokio::test]
async fn refused_login_is_explained() {
    let mut server = RedisServer::builder().password("secret").start();
    let url = format!("redis://:guess@127.0.0.1:{}", server.port());
    let error = RedisMember::new(url).unwrap().examine().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    let at = member(&server);
    server.kill();
    let error = at.examine().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(error.store(), Some(at.id().as_str()));
    assert!(!format!("{error:?}").contains("secret"));
}

#[tokio::test]
async fn needs_are_told_apart() {
    let server = RedisServer::start();
    let rights = documented_rights("locks");
    let without = ["+set", "+hget", "+publish", "+scan", "+config|get"];
    let others = rights.iter().filter(|it| !without.contains(it)).copied();
    let found = look(&let_in(&server, &others.collect::<Vec<_>>())).await;
    let mut needs: Vec<_> = found.missing_rights.iter().map(|it| it.need).collect();
    needs.sort_unstable();
    let all = [
        Need::Locks,
        Need::Sets,
        Need::Waking,
        Need::Looking,
        Need::Durability,
    ];
    assert_eq!(needs, all);
}
