//! Which store each address names, and what is said about those that name none.
#![cfg(all(
    feature = "etcd",
    feature = "file",
    feature = "postgres",
    feature = "redis",
    feature = "zookeeper"
))]

use leasehold::{Client, ErrorKind, blocking};
use leasehold_stores::{AnyStore, Connect, open, split};

fn refusal(addresses: &str) -> String {
    let error = AnyStore::parse(addresses).expect_err(addresses);
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    error.to_string()
}

#[test]
fn each_address_names_its_store() {
    let store = |addresses| AnyStore::parse(addresses).unwrap();
    assert!(matches!(store("file:///tmp/locks"), AnyStore::File(_)));
    assert!(matches!(store("postgres://a,b/app"), AnyStore::Postgres(_)));
    assert!(matches!(store("zk://a,b,c/locks"), AnyStore::ZooKeeper(_)));
    let AnyStore::Redis(quorum) = store("redis://a, rediss://b ,unix:///run/c.sock") else {
        panic!("these are Redis servers");
    };
    assert_eq!(quorum.member_ids().count(), 3);
    let AnyStore::Etcd(etcd) = store("etcd://a,b:2380,c") else {
        panic!("this is an etcd ensemble");
    };
    assert_eq!(etcd.servers().count(), 3);
}

#[test]
fn lists_that_are_no_store_name_the_rule() {
    for (addresses, rule) in [
        ("", "a store URL is empty"),
        ("redis://a,", "a store URL is empty"),
        ("/var/lib/locks", "is a path"),
        ("~/locks", "is a path"),
        ("a:6379", "no scheme"),
        ("mysql://a", "unknown scheme"),
        ("redis://a,file:///tmp", "cannot be part of a quorum"),
        ("file:///tmp,redis://a", "cannot be part of a quorum"),
        ("redis://a,zk://b", "in one address"),
        ("postgres://a/x,postgres://b/x", "no quorum"),
        ("redis://a:port", "1 to 65535"),
        ("redis://u:p@a,etcd://b", r#""redis://…@a" and "etcd://b""#),
        ("etcd://a,redis://b", "different kinds"),
    ] {
        let text = refusal(addresses);
        assert!(text.contains(rule), "{addresses}: {text}");
    }
    let several = AnyStore::new(&["zk://a", "zk://b"]).unwrap_err();
    assert!(several.to_string().contains("in one address"), "{several}");
    assert!(AnyStore::new(&[] as &[&str]).is_err());
}

#[test]
fn wrong_part_gets_one_message_on_every_store() {
    for rest in [
        "",
        "a b",
        "a:0",
        "a:x",
        "::1",
        "[::1",
        "ann@a",
        "a/x@y",
        "a?ca=",
        "a?ca=/x&ca=/y",
        "ann:p@a?password_file=/x",
    ] {
        let rules = ["redis", "etcd", "zk"].map(|scheme| {
            let text = refusal(&format!("{scheme}://{rest}"));
            let (_, rule) = text.split_once("\": ").unwrap();
            rule.split("; expected").next().unwrap().to_owned()
        });
        assert!(rules.iter().all(|rule| *rule == rules[0]), "{rules:?}");
    }
}

#[test]
fn no_refusal_shows_a_password() {
    let schemes = "redis:// rediss:// unix:// postgres:// etcd:// etcds:// zk:// zks:// file:// file: mysql:// //";
    // What follows the last `@` is a host.
    let ends = "@ @a @a:1 @a:x @a/x/y @a?x=1 @a@b:x @a,b";
    let unfinished = " /x /1 ?x=1 ,b";
    for scheme in schemes.split(' ').chain([""]) {
        for separator in ["", ",", "/", "?", ":", "://", "@", "#", "%", "%2C", " "] {
            let unfinished = unfinished.split(' ').filter(|_| separator != "@");
            for end in ends.split(' ').chain(unfinished) {
                for begin in ["", "a,", "redis://a,", "etcd://a,", "file:///a,"] {
                    let login = format!("locks:Hunter{separator}Secret");
                    shows_no_secret(&format!("{begin}{scheme}{login}{end}"));
                }
            }
        }
    }
}

fn shows_no_secret(addresses: &str) {
    if let Err(error) = AnyStore::parse(addresses) {
        let text = error.to_string();
        let is_shown = text.contains("Hunter") || text.contains("Secret");
        assert!(!is_shown, "{addresses}: {text}");
    }
}

#[test]
fn comma_in_a_password_is_explained() {
    let text = refusal("redis://locks:Hunter,Secret@a");
    let shown = r#"store URL "redis://locks:…": the port is not a number"#;
    assert!(text.starts_with(shown), "{text}");
    assert!(text.contains("written %2C"), "{text}");
}

#[test]
fn ensembles_are_one_address() {
    assert_eq!(split(" redis://a, redis://b"), ["redis://a", "redis://b"]);
    assert_eq!(split("zk://a,b,c/x"), ["zk://a,b,c/x"]);
    assert_eq!(split("postgresql://a,b/x"), ["postgresql://a,b/x"]);
}

#[test]
fn clients_with_and_without_async_share_locks() {
    let parent = tempfile::tempdir().unwrap();
    let url = format!("file://{}/locks", parent.path().display());
    let blocking = <blocking::Client as Connect>::connect(&url).unwrap();
    let client = <Client as Connect>::connect(&url).unwrap();
    let guard = blocking.lock("nightly").acquire().unwrap();
    let other = blocking::Client::from(client);
    assert!(other.lock("nightly").try_acquire().unwrap().is_none());
    guard.release().unwrap();
    assert!(other.lock("nightly").try_acquire().unwrap().is_some());
}

#[test]
fn no_debug_output_shows_a_password() {
    for address in [
        "redis://u:hunter2@a",
        "postgres://u:hunter2@a/app",
        "etcd://u:hunter2@a",
        "zk://u:hunter2@a",
    ] {
        let store = AnyStore::parse(address).unwrap();
        let shown = format!(
            "{store:?} {} {:?}",
            open(address).unwrap(),
            open(address).unwrap()
        );
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
