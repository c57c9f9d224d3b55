//! Data whose writes show a fence.

use std::time::Duration;

use leasehold::{Effect, Error, ErrorKind, Fence, Fenced};
use leasehold_redis::{FENCED_SCRIPT, FencedKey, FencedRedis, fence_record};
use leasehold_testkit::servers::{RedisServer, Reply, RespConnection, until};
use pollster::block_on;

const REST_MS: i64 = 7 * 24 * 60 * 60 * 1000;

fn fence(number: u64) -> Fence {
    Fence::new(number).unwrap()
}

fn key(server: &RedisServer, name: &str) -> FencedKey {
    FencedRedis::new(server.url()).unwrap().key(name).unwrap()
}

fn value(server: &RedisServer, key: &str) -> Reply {
    server.command(&["GET", key])
}

fn bulk(text: impl Into<String>) -> Reply {
    Reply::Bulk(text.into())
}

fn left(server: &RedisServer, key: &str) -> i64 {
    match server.command(&["PTTL", key]) {
        Reply::Integer(left) => left,
        other => panic!("PTTL: {other:?}"),
    }
}

/// Calls the script, as another client would.
fn eval(connection: &mut RespConnection, key: &str, words: &[&str]) -> Reply {
    let record = fence_record(key);
    let call = ["EVAL", FENCED_SCRIPT, "2", key, &record];
    let call: Vec<&str> = call.into_iter().chain(words.iter().copied()).collect();
    connection.call(&call).unwrap()
}

fn let_in(answer: Reply) -> Reply {
    Reply::Array(vec![Reply::Integer(1), answer])
}

fn shut_at(greatest: u64) -> Reply {
    Reply::Array(vec![Reply::Integer(0), bulk(greatest.to_string())])
}

#[test]
fn a_smaller_fence_is_refused_and_writes_nothing() {
    let server = RedisServer::start();
    let invoice = key(&server, "invoice");
    block_on(invoice.set(fence(5), "first")).unwrap();
    block_on(invoice.set(fence(7), "second")).unwrap();
    block_on(invoice.set(fence(7), "second, again")).unwrap();
    let late: [Error; 4] = [
        block_on(invoice.set(fence(5), "late")).unwrap_err(),
        block_on(invoice.set_for(fence(6), "late", Duration::from_secs(1))).unwrap_err(),
        block_on(invoice.delete(fence(6))).unwrap_err(),
        block_on(invoice.claim(fence(6))).unwrap_err(),
    ];
    for error in late {
        assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
        assert_eq!(error.effect(), Effect::None);
        assert_eq!(
            error.store(),
            Some(&*format!("127.0.0.1:{}", server.port()))
        );
        assert!(error.to_string().contains("has seen 7"), "{error}");
    }
    assert_eq!(value(&server, "invoice"), bulk("second, again"));
    assert_eq!(left(&server, "invoice"), -1);
}

#[test]
fn claim_refuses_smaller_fences_before_a_write() {
    let server = RedisServer::start();
    let invoice = key(&server, "invoice");
    block_on(invoice.set(fence(5), "first")).unwrap();
    block_on(invoice.claim(fence(7))).unwrap();
    assert_eq!(value(&server, "invoice"), bulk("first"));
    assert!(
        block_on(invoice.set(fence(5), "late"))
            .unwrap_err()
            .is_fenced()
    );
    block_on(invoice.set(fence(7), "second")).unwrap();
    let other = key(&server, "another");
    block_on(other.set(fence(1), "each key has a door of its own")).unwrap();
}

#[test]
fn guard_claims_on_another_server() {
    let (locks, data) = (RedisServer::start(), RedisServer::start());
    let client = crate::support::client(&locks);
    let invoice = key(&data, "invoice");
    block_on(async {
        let first = client.lock("invoice").acquire().await?;
        first.claim(&invoice).await?;
        let late = first.fence();
        first.release().await?;
        let second = client.lock("invoice").acquire().await?;
        second.claim(&invoice).await?;
        assert!(invoice.set(late, "late").await.unwrap_err().is_fenced());
        invoice.set(second.fence(), [0xff, 0x00]).await?;
        assert_eq!(data.command(&["STRLEN", "invoice"]), Reply::Integer(2));
        second.release().await
    })
    .unwrap();
}

#[test]
fn fence_record_outlives_its_data_by_a_week() {
    let server = RedisServer::start();
    let record = fence_record("invoice");
    let invoice = key(&server, "invoice");
    let rests = |what: &str| {
        let left = left(&server, &record);
        assert!((1..=REST_MS).contains(&left), "{what}: {left}");
    };
    block_on(invoice.claim(fence(1))).unwrap();
    rests("claimed, and never written");
    block_on(invoice.set(fence(1), "x")).unwrap();
    assert_eq!(left(&server, &record), -1, "as long as the data");
    block_on(invoice.claim(fence(2))).unwrap();
    assert_eq!(left(&server, &record), -1, "the data is still there");
    block_on(invoice.set_for(fence(2), "x", Duration::from_secs(600))).unwrap();
    let data_ms = left(&server, "invoice");
    assert!((1..=600_000).contains(&data_ms), "{data_ms}");
    let longer = left(&server, &record);
    assert!((REST_MS..=REST_MS + 600_000).contains(&longer), "{longer}");
    assert!(block_on(invoice.delete(fence(2))).unwrap());
    assert!(!block_on(invoice.delete(fence(2))).unwrap());
    rests("deleted");
    assert!(
        block_on(invoice.set(fence(1), "late"))
            .unwrap_err()
            .is_fenced()
    );
}

#[test]
fn data_that_expired_leaves_the_door_shut() {
    let server = RedisServer::start();
    let invoice = key(&server, "invoice");
    block_on(invoice.set_for(fence(2), "x", Duration::from_millis(1))).unwrap();
    until("the data expires", || {
        value(&server, "invoice") == Reply::Nil
    });
    assert!(
        block_on(invoice.set(fence(1), "late"))
            .unwrap_err()
            .is_fenced()
    );
}

#[test]
fn another_client_runs_any_command_under_the_script() {
    let server = RedisServer::start();
    let mut client = server.connect();
    let hash = |client: &mut RespConnection, fence: &str, total: &str| {
        eval(client, "hash", &[fence, "HSET", "total", total])
    };
    assert_eq!(hash(&mut client, "5", "9"), let_in(Reply::Integer(1)));
    assert_eq!(eval(&mut client, "hash", &["6"]), let_in(Reply::Nil));
    assert_eq!(hash(&mut client, "5", "0"), shut_at(6));
    let total = server.command(&["HGET", "hash", "total"]);
    assert_eq!(total, bulk("9"));
    let wrong = eval(&mut client, "hash", &["7", "INCRBY", "1"]);
    assert!(
        matches!(&wrong, Reply::Error(text) if text.contains("WRONGTYPE")),
        "{wrong:?}"
    );
    assert_eq!(
        hash(&mut client, "6", "0"),
        shut_at(7),
        "the door is shut all the same"
    );
}

#[test]
fn fences_are_compared_to_the_last_digit() {
    let server = RedisServer::start();
    let mut client = server.connect();
    let max = Fence::MAX.get();
    let texts = [max - 1, max].map(|number| number.to_string());
    assert_eq!(eval(&mut client, "k", &[&texts[0]]), let_in(Reply::Nil));
    assert_eq!(eval(&mut client, "k", &[&texts[1]]), let_in(Reply::Nil));
    assert_eq!(eval(&mut client, "k", &[&texts[0]]), shut_at(max));
    assert_eq!(value(&server, &fence_record("k")), bulk(&*texts[1]));
    // Fences are compared as numbers, not as text.
    assert_eq!(eval(&mut client, "n", &["9"]), let_in(Reply::Nil));
    assert_eq!(eval(&mut client, "n", &["10"]), let_in(Reply::Nil));
    assert_eq!(eval(&mut client, "n", &["9"]), shut_at(10));
}

#[test]
fn invalid_fences_are_refused_and_change_nothing() {
    let server = RedisServer::start();
    let mut client = server.connect();
    let no_fences = [
        "",
        "0",
        "-1",
        "1.5",
        "1e3",
        "0x10",
        "07",
        " 7",
        "7 ",
        "x",
        "nan",
        "inf",
        "9007199254740992",
        "99999999999999999999",
    ];
    for text in no_fences {
        let answer = eval(&mut client, "k", &[text, "SET", "v"]);
        assert!(
            matches!(&answer, Reply::Error(said) if said.contains("from 1 to 9007199254740991")),
            "{text:?}: {answer:?}"
        );
    }
    let without = eval(&mut client, "k", &[]);
    assert!(matches!(&without, Reply::Error(said) if said.contains("from 1 to")));
    let one_key = client.call(&["EVAL", FENCED_SCRIPT, "1", "k", "5", "SET", "v"]);
    let one_key = one_key.unwrap();
    assert!(
        matches!(&one_key, Reply::Error(said) if said.contains("KEYS are two")),
        "{one_key:?}"
    );
    assert_eq!(server.command(&["DBSIZE"]), Reply::Integer(0));
}

#[test]
fn a_damaged_record_is_named() {
    let server = RedisServer::start();
    let record = fence_record("invoice");
    let invoice = key(&server, "invoice");
    for damage in [
        vec!["SET", &record, "soon"],
        vec!["HSET", &record, "f", "1"],
    ] {
        server.command(&["DEL", &record]);
        server.command(&damage);
        let error = block_on(invoice.set(fence(1), "x")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains(&record), "{error}");
        assert_eq!(value(&server, "invoice"), Reply::Nil);
    }
}

/// The accepted writes are in the order of the fences, even if writes reach the server in another order.
#[test]
fn concurrent_writes_follow_fence_order() {
    const CLIENTS: usize = 6;
    const EACH: usize = 300;
    let server = RedisServer::start();
    std::thread::scope(|scope| {
        for first in 1..=CLIENTS {
            let mut client = server.connect();
            scope.spawn(move || {
                for step in 0..EACH {
                    let mine = (first + step * CLIENTS).to_string();
                    let answer = eval(&mut client, "log", &[&mine, "RPUSH", &mine]);
                    assert!(matches!(answer, Reply::Array(_)), "{answer:?}");
                }
            });
        }
    });
    let Reply::Array(log) = server.command(&["LRANGE", "log", "0", "-1"]) else {
        panic!("LRANGE");
    };
    let log = log.into_iter().map(|entry| match entry {
        Reply::Bulk(text) => text.parse().unwrap(),
        other => panic!("{other:?}"),
    });
    let log: Vec<usize> = log.collect();
    assert!(log.is_sorted(), "{log:?}");
    assert_eq!(log.last(), Some(&(CLIENTS * EACH)));
}

#[test]
fn fence_record_shares_the_slot_of_its_key() {
    let node = RedisServer::builder().cluster().start();
    let mut client = node.connect();
    for name in ["invoice", "{user7}/cart", "a{b", "x{y}{z}", "Ключ", "{}"] {
        let record = fence_record(name);
        let slots = [name, &record].map(|key| node.command(&["CLUSTER", "KEYSLOT", key]));
        if name == "{}" {
            // No name can have this tag. The cluster reports that, and nothing is written unchecked.
            let answer = eval(&mut client, name, &["1", "SET", "v"]);
            assert!(
                matches!(&answer, Reply::Error(said) if said.starts_with("CROSSSLOT")),
                "{answer:?}"
            );
            continue;
        }
        assert_eq!(slots[0], slots[1], "{name} and {record}");
        let answer = eval(&mut client, name, &["2", "SET", "v"]);
        assert_eq!(answer, let_in(Reply::Status("OK".into())), "{name}");
        assert_eq!(eval(&mut client, name, &["1", "SET", "late"]), shut_at(2));
    }
    assert_eq!(
        fence_record("{user7}/cart"),
        "leasehold:fenced:{user7}:{user7}/cart"
    );
}

#[test]
fn late_requests_of_a_stopped_server_are_harmless() {
    let server = RedisServer::start();
    let invoice = key(&server, "invoice");
    block_on(invoice.set(fence(1), "first")).unwrap();
    server.freeze();
    let error = block_on(invoice.set(fence(1), "perhaps")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert_eq!(error.effect(), Effect::Unknown);
    server.thaw();
    block_on(invoice.set(fence(2), "second")).unwrap();
    assert_eq!(value(&server, "invoice"), bulk("second"));
}

#[test]
fn names_of_internal_records_are_refused() {
    let server = FencedRedis::new("redis://127.0.0.1:1").unwrap();
    for (name, rule) in [("", "is empty"), ("leasehold:fence:0:{x}:x", "begins with")] {
        let error = server.key(name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(rule), "{error}");
    }
    let apart = FencedRedis::new("redis://127.0.0.1:1?prefix=app:").unwrap();
    let error = block_on(apart.key("leasehold:x").unwrap().set_for(
        fence(1),
        "x",
        Duration::from_micros(900),
    ));
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert!(error.to_string().contains("900µs"), "{error}");
    let error = block_on(apart.key("x").unwrap().set(fence(1 << 53), "x"));
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert!(error.to_string().contains("9007199254740992"), "{error}");
}

#[test]
fn documented_rights_suffice_for_fenced_data() {
    let server = RedisServer::start();
    let page = include_str!("../../src/lib.rs");
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix("//! ACL SETUSER data "));
    let rights: Vec<&str> = line.unwrap().split(' ').collect();
    let user = |name: &str, rights: &[&str]| {
        let command = ["ACL", "SETUSER", name, "reset"];
        let command: Vec<&str> = command.iter().chain(rights).copied().collect();
        assert_eq!(server.command(&command), Reply::Status("OK".into()));
        let url = format!("redis://{name}:secret@127.0.0.1:{}", server.port());
        FencedRedis::new(url).unwrap().key("invoice:7").unwrap()
    };
    let everything = |invoice: &FencedKey, number: u64| {
        block_on(async {
            invoice.claim(fence(number)).await?;
            invoice.set(fence(number), "x").await?;
            invoice
                .set_for(fence(number), "x", Duration::from_secs(9))
                .await?;
            invoice.delete(fence(number)).await
        })
    };
    everything(&user("data", &rights), 1).unwrap();
    for (number, missing) in rights
        .iter()
        .filter(|right| right.starts_with('+'))
        .enumerate()
    {
        let fewer: Vec<&str> = rights
            .iter()
            .filter(|right| *right != missing)
            .copied()
            .collect();
        server.command(&["SCRIPT", "FLUSH"]);
        let invoice = user(&format!("user{number}"), &fewer);
        let error = everything(&invoice, 2).expect_err(missing);
        assert_eq!(error.kind(), ErrorKind::Refused, "{missing}: {error}");
        let shown = format!("{error:?} {invoice:?}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}
