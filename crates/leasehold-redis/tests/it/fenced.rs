//! Data whose writes show a fence.

use std::time::Duration;

use leasehold::fencing::Fenced;
use leasehold::{Effect, Error, ErrorKind, Fence};
use leasehold_redis::{FENCED_SCRIPT, FencedKey, FencedRedis, fence_record};
use leasehold_testkit::servers::{RedisServer, Reply, RespConnection, until};

use crate::support::{documented_rights, left, set_user, start, value};

const REST_MS: i64 = 7 * 24 * 60 * 60 * 1000;

fn fence(number: u64) -> Fence {
    Fence::new(number).unwrap()
}

fn bulk(text: impl Into<String>) -> Reply {
    Reply::Bulk(text.into())
}

/// Starts a server, and opens the key "invoice" there.
fn invoice() -> (RedisServer, FencedKey) {
    let server = RedisServer::start();
    let data = FencedRedis::new(server.url()).unwrap();
    (server, data.key("invoice").unwrap())
}

async fn assert_shut(key: &FencedKey, number: u64) {
    let error = key.set(fence(number), "late").await.unwrap_err();
    assert!(error.is_fenced(), "{error}");
}

/// Calls the script, as another client would.
fn eval(connection: &mut RespConnection, key: &str, words: &[&str]) -> Reply {
    let call = ["EVAL", FENCED_SCRIPT, "2", key, &fence_record(key)];
    connection.call(&[&call, words].concat()).unwrap()
}

fn let_in(answer: Reply) -> Reply {
    Reply::Array(vec![Reply::Integer(1), answer])
}

fn closed_at(greatest: u64) -> Reply {
    Reply::Array(vec![Reply::Integer(0), bulk(greatest.to_string())])
}

fn is_error(answer: &Reply, part: &str) {
    let says_so = matches!(answer, Reply::Error(said) if said.contains(part));
    assert!(says_so, "{answer:?}");
}

#[tokio::test]
async fn smaller_fence_is_refused_and_writes_nothing() {
    let (server, invoice) = invoice();
    invoice.set(fence(5), "first").await.unwrap();
    invoice.fence_off(fence(7)).await.unwrap();
    assert_eq!(value(&server, "invoice"), bulk("first"));
    for text in ["second", "second, again"] {
        invoice.set(fence(7), text).await.unwrap();
    }
    let late: [Error; 4] = [
        invoice.set(fence(5), "late").await.unwrap_err(),
        invoice
            .set_for(fence(6), "late", Duration::from_secs(1))
            .await
            .unwrap_err(),
        invoice.delete(fence(6)).await.unwrap_err(),
        invoice.fence_off(fence(6)).await.unwrap_err(),
    ];
    for error in late {
        assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
        assert_eq!(error.effect(), Effect::None);
        let address = format!("127.0.0.1:{}", server.port());
        assert_eq!(error.store(), Some(&*address));
        assert!(error.to_string().contains("has seen 7"), "{error}");
    }
    assert_eq!(value(&server, "invoice"), bulk("second, again"));
    assert_eq!(left(&server, "invoice"), -1);
}

#[tokio::test]
async fn guard_claims_on_another_server() {
    let ((_locks, client), (data, invoice)) = (start(), invoice());
    let first = client.lock("invoice").acquire().await.unwrap();
    first.fence_off(&invoice).await.unwrap();
    let late = first.fence();
    first.release().await.unwrap();
    let second = client.lock("invoice").acquire().await.unwrap();
    second.fence_off(&invoice).await.unwrap();
    assert_shut(&invoice, late.get()).await;
    invoice.set(second.fence(), [0xff, 0x00]).await.unwrap();
    assert_eq!(data.command(&["STRLEN", "invoice"]), Reply::Integer(2));
}

#[tokio::test]
async fn fence_record_outlives_its_data_by_a_week() {
    let (server, invoice) = invoice();
    let record = fence_record("invoice");
    let rests = |what: &str| {
        let left = left(&server, &record);
        assert!((1..=REST_MS).contains(&left), "{what}: {left}");
    };
    invoice.fence_off(fence(1)).await.unwrap();
    rests("claimed, and never written");
    invoice.set(fence(1), "x").await.unwrap();
    assert_eq!(left(&server, &record), -1, "as long as the data");
    invoice.fence_off(fence(2)).await.unwrap();
    assert_eq!(left(&server, &record), -1, "the data is still there");
    let ten_minutes = Duration::from_secs(600);
    invoice.set_for(fence(2), "x", ten_minutes).await.unwrap();
    let data_ms = left(&server, "invoice");
    assert!((1..=600_000).contains(&data_ms), "{data_ms}");
    let longer = left(&server, &record);
    assert!((REST_MS..=REST_MS + 600_000).contains(&longer), "{longer}");
    assert!(invoice.delete(fence(2)).await.unwrap());
    assert!(!invoice.delete(fence(2)).await.unwrap());
    rests("deleted");
    assert_shut(&invoice, 1).await;
    let soon = Duration::from_millis(1);
    invoice.set_for(fence(2), "x", soon).await.unwrap();
    until("the data expires", || {
        value(&server, "invoice") == Reply::Nil
    });
    assert_shut(&invoice, 1).await;
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
    assert_eq!(hash(&mut client, "5", "0"), closed_at(6));
    let total = server.command(&["HGET", "hash", "total"]);
    assert_eq!(total, bulk("9"));
    let wrong = eval(&mut client, "hash", &["7", "INCRBY", "1"]);
    is_error(&wrong, "WRONGTYPE");
    // The fence counts all the same.
    assert_eq!(hash(&mut client, "6", "0"), closed_at(7));
}

#[test]
fn fences_are_compared_to_the_last_digit() {
    let server = RedisServer::start();
    let mut client = server.connect();
    let max = Fence::MAX.get();
    // They are compared as numbers, not as text.
    for (key, smaller, greater) in [("k", max - 1, max), ("n", 9, 10)] {
        let texts = [smaller, greater].map(|number| number.to_string());
        for text in &texts {
            assert_eq!(eval(&mut client, key, &[text]), let_in(Reply::Nil));
        }
        assert_eq!(eval(&mut client, key, &[&texts[0]]), closed_at(greater));
        assert_eq!(value(&server, &fence_record(key)), bulk(&*texts[1]));
    }
}

#[test]
fn invalid_fences_are_refused_and_change_nothing() {
    let server = RedisServer::start();
    let mut client = server.connect();
    for text in [
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
    ] {
        let answer = eval(&mut client, "k", &[text, "SET", "v"]);
        is_error(&answer, "from 1 to 9007199254740991");
    }
    is_error(&eval(&mut client, "k", &[]), "from 1 to");
    let one_key = ["EVAL", FENCED_SCRIPT, "1", "k", "5", "SET", "v"];
    is_error(&client.call(&one_key).unwrap(), "KEYS are two");
    assert_eq!(server.command(&["DBSIZE"]), Reply::Integer(0));
}

#[tokio::test]
async fn damaged_record_is_named() {
    let (server, invoice) = invoice();
    let record = fence_record("invoice");
    for damage in [&["SET", &record, "soon"][..], &["HSET", &record, "f", "1"]] {
        server.command(&["DEL", &record]);
        server.command(damage);
        let error = invoice.set(fence(1), "x").await.unwrap_err();
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
    for name in ["invoice", "{user7}/cart", "a{b", "x{y}{z}", "Ключ"] {
        let record = fence_record(name);
        let slots = [name, &record].map(|key| node.command(&["CLUSTER", "KEYSLOT", key]));
        assert_eq!(slots[0], slots[1], "{name} and {record}");
        let answer = eval(&mut client, name, &["2", "SET", "v"]);
        assert_eq!(answer, let_in(Reply::Status("OK".into())), "{name}");
        assert_eq!(eval(&mut client, name, &["1", "SET", "late"]), closed_at(2));
    }
    // No name can have this tag. The cluster reports that, and nothing is written unchecked.
    is_error(&eval(&mut client, "{}", &["1", "SET", "v"]), "CROSSSLOT");
    let record = fence_record("{user7}/cart");
    assert_eq!(record, "leasehold:fenced:{user7}:{user7}/cart");
}

#[tokio::test]
async fn late_requests_of_a_stopped_server_are_harmless() {
    let (server, invoice) = invoice();
    invoice.set(fence(1), "first").await.unwrap();
    server.freeze();
    let error = invoice.set(fence(1), "perhaps").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert_eq!(error.effect(), Effect::Unknown);
    server.thaw();
    invoice.set(fence(2), "second").await.unwrap();
    assert_eq!(value(&server, "invoice"), bulk("second"));
}

#[tokio::test]
async fn invalid_keys_and_values_are_refused() {
    let server = FencedRedis::new("redis://127.0.0.1:1").unwrap();
    let apart = FencedRedis::new("redis://127.0.0.1:1?prefix=app:").unwrap();
    let key = apart.key("leasehold:x").unwrap();
    let short = Duration::from_micros(900);
    for (error, rule) in [
        (server.key("").map(drop), "is empty"),
        (
            server.key("leasehold:fence:0:{x}:x").map(drop),
            "begins with",
        ),
        (key.set_for(fence(1), "x", short).await.map(drop), "900us"),
        (
            key.set(fence(1 << 53), "x").await.map(drop),
            "9007199254740992",
        ),
    ] {
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains(rule), "{error}");
    }
}

#[test]
fn descriptions_hide_the_password() {
    let data = FencedRedis::new("redis://ann:secret@127.0.0.1:1").unwrap();
    let invoice = data.key("invoice").unwrap();
    for shown in [format!("{data:?}"), format!("{invoice:?}")] {
        assert!(shown.contains("127.0.0.1:1"), "{shown}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}

#[tokio::test]
async fn documented_rights_suffice_for_fenced_data() {
    let server = RedisServer::start();
    let rights = documented_rights("data");
    let do_everything = async |missing: &str, number| {
        let given = rights.iter().filter(|right| **right != missing);
        set_user(&server, "data", &given.copied().collect::<Vec<_>>());
        server.command(&["SCRIPT", "FLUSH"]);
        let url = format!("redis://data:secret@127.0.0.1:{}", server.port());
        let invoice = FencedRedis::new(url).unwrap().key("invoice:7").unwrap();
        invoice.fence_off(fence(number)).await?;
        invoice.set(fence(number), "x").await?;
        let short = Duration::from_secs(9);
        invoice.set_for(fence(number), "x", short).await?;
        invoice.delete(fence(number)).await
    };
    do_everything("none", 1).await.unwrap();
    for missing in rights.iter().filter(|right| right.starts_with('+')) {
        let error = do_everything(missing, 2).await.expect_err(missing);
        assert_eq!(error.kind(), ErrorKind::Refused, "{missing}: {error}");
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    }
}
