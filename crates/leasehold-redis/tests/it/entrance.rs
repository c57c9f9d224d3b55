//! Who may enter, and who cannot be a member.

use leasehold::clock::WallTime;
use leasehold::{
    Client, Departure, Effect, Error, ErrorKind, Inspection as _, Member, Renewal, Store,
};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{RedisServer, Reply, TestCa};

use crate::support::{
    card_edit, claim, granted, held, key, member, next, one_of, queued, refused, released, shared,
};

/// The text of the refusal, which has no effect, no password, and the member's name.
async fn refusal(store: &RedisMember, kind: ErrorKind) -> String {
    let error = refused(store, &claim("deploy")).await;
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(error.effect(), Effect::None);
    assert_eq!(error.store(), Some(store.id().as_str()));
    let debug = format!("{error:?} {store:?}");
    assert!(
        !debug.contains("secret") && !debug.contains("guess"),
        "{debug}"
    );
    error.to_string()
}

#[tokio::test]
async fn passwords_and_users_open_the_door() {
    let server = RedisServer::builder()
        .password("secret")
        .acl("ann", "on >s%cr@t ~* +@all")
        .start();
    let at = |login: &str| {
        RedisMember::new(format!("redis://{login}127.0.0.1:{}/3", server.port())).unwrap()
    };
    for login in [":secret@", "default:secret@", "ann:s%25cr%40t@"] {
        let store = at(login);
        let mine = claim("deploy");
        granted(&store, &mine).await;
        released(&store, &mine).await;
    }
    let text = refusal(&at(":guess@"), ErrorKind::Refused).await;
    assert!(text.contains(r#"password of the user "default""#), "{text}");
    let text = refusal(&at("ann:guess@"), ErrorKind::Refused).await;
    assert!(text.contains(r#"password of the user "ann""#), "{text}");
    let text = refusal(&at(""), ErrorKind::Refused).await;
    assert!(text.contains("asks for a password"), "{text}");
}

#[tokio::test]
async fn a_password_that_does_not_fit_is_not_shown_in_the_old_protocol_either() {
    let old = || RedisServer::builder().directive("rename-command", "HELLO \"\"");
    for server in [old().password("secret").start(), old().start()] {
        let url = format!("redis://:guess@127.0.0.1:{}", server.port());
        let text = refusal(&RedisMember::new(url).unwrap(), ErrorKind::Refused).await;
        assert!(text.contains(r#"password of the user "default""#), "{text}");
    }
}

#[tokio::test]
async fn a_database_that_does_not_exist_is_named() {
    let server = RedisServer::start();
    let store = RedisMember::new(format!("{}/999", server.url())).unwrap();
    let text = refusal(&store, ErrorKind::Refused).await;
    assert!(text.contains("out of range"), "{text}");
}

#[tokio::test]
async fn a_database_of_its_own_is_used() {
    let server = RedisServer::start();
    let store = RedisMember::new(format!("{}/3", server.url())).unwrap();
    granted(&store, &claim("deploy")).await;
    assert_eq!(server.command(&["GET", "deploy"]), Reply::Nil);
}

#[tokio::test]
async fn a_replica_is_refused() {
    let primary = RedisServer::start();
    let replica = RedisServer::builder().replica_of(&primary).start();
    let text = refusal(&member(&replica), ErrorKind::Unsupported).await;
    assert!(text.contains("is a replica"), "{text}");
}

#[tokio::test]
async fn a_node_of_a_cluster_is_refused() {
    let node = RedisServer::builder().cluster().start();
    let text = refusal(&member(&node), ErrorKind::Unsupported).await;
    assert!(text.contains("node of a Redis Cluster"), "{text}");
}

#[tokio::test]
async fn a_server_out_of_memory_says_so() {
    let server = RedisServer::builder().directive("maxmemory", "1").start();
    let text = refusal(&member(&server), ErrorKind::Refused).await;
    assert!(text.contains("OOM"), "{text}");
    let error = refused(&member(&server), &shared("deploy")).await;
    assert!(error.to_string().contains("OOM"), "{error}");
}

#[tokio::test]
async fn a_unix_socket_leads_to_the_same_locks() {
    let server = RedisServer::builder().unix().start();
    let path = server.socket().display();
    let by_socket = RedisMember::new(format!("unix://{path}")).unwrap();
    assert_eq!(by_socket.id().as_str(), path.to_string());
    let mine = claim("deploy");
    granted(&by_socket, &mine).await;
    crate::support::busy(&member(&server), &claim("deploy")).await;
    released(&by_socket, &mine).await;
    let missing = RedisMember::new("unix:///nowhere/redis.sock").unwrap();
    let text = refusal(&missing, ErrorKind::Unreachable).await;
    assert!(text.contains("No such file"), "{text}");
}

#[tokio::test]
async fn tls_needs_an_authority_that_is_trusted() {
    let server = RedisServer::builder().tls().start();
    let with = |ca: &TestCa| {
        let ca = ca.certificate();
        RedisMember::new(format!("{}?ca={}", server.tls_url(), ca.display())).unwrap()
    };
    let store = with(server.ca());
    let mine = claim("deploy");
    granted(&store, &mine).await;
    released(&store, &mine).await;
    let text = refusal(&with(&TestCa::new()), ErrorKind::Refused).await;
    assert!(text.contains("invalid peer certificate"), "{text}");
    let by_the_machine = RedisMember::new(server.tls_url()).unwrap();
    let error = refused(&by_the_machine, &claim("deploy")).await;
    assert!(
        matches!(error.kind(), ErrorKind::Refused | ErrorKind::Unsupported),
        "{error}"
    );
}

#[tokio::test]
async fn a_file_that_is_no_authority_is_named() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for (file, rule) in [
        (script, "no certificate in it"),
        ("/nowhere/ca.pem", "No such file"),
    ] {
        let error = RedisMember::new(format!("rediss://h?ca={file}")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(text.contains(rule) && text.contains(file), "{text}");
    }
}

#[test]
fn one_server_or_id_cannot_be_in_a_set_twice() {
    let refusal = |urls: &[&str]| {
        let error = RedisMember::all(urls).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(!text.contains("secret"), "{text}");
        text
    };
    for urls in [
        ["redis://h", "redis://u:secret@H:6379/1?id=b"],
        ["redis://a?id=one", "redis://b?id=one"],
        ["unix:///run/r.sock", "unix:///run/r.sock?db=2&id=other"],
        ["redis://h:1", "rediss://h:1?id=tls"],
    ] {
        assert!(refusal(&urls).contains("given twice"));
    }
    let many: Vec<String> = (1..=32).map(|port| format!("redis://h:{port}")).collect();
    assert_eq!(RedisMember::all(&many[..31]).unwrap().len(), 31);
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(refusal(&many).contains("more than 31"));
}

/// The rights that the crate's front page lists.
fn documented_rights() -> Vec<&'static str> {
    let page = include_str!("../../src/lib.rs");
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix("//! ACL SETUSER locks "));
    line.unwrap().split(' ').collect()
}

/// Everything a client ever asks of a member; the first error ends it.
async fn everything(store: &RedisMember) -> Result<(), Error> {
    let presence = store.presence().await?;
    let edit = card_edit(&presence, "a");
    store.write_card(&edit).await?;
    store.witness(&edit.seen).await?;
    for claim in [claim("deploy"), shared("deploy"), one_of("deploy", 3)] {
        let grant = match store.acquire(&claim).await? {
            leasehold::Attempt::Granted(grant) => grant,
            busy => panic!("{busy:?}"),
        };
        store.seal(&claim, grant.fence).await?;
        let lease = [held(&claim, &grant)];
        store.heal(&lease).await?;
        for held in [true, false] {
            match &store.renew(&lease).await[..] {
                [Renewal::Unknown(error)] => return Err(error.clone()),
                [Renewal::Renewed] if held => {}
                [Renewal::Lost(_)] if !held => {}
                answers => panic!("{answers:?}"),
            }
            store.holders(&key("deploy")).await?;
            store.waiters(&key("deploy")).await?;
            store.list("dep", 10).await?;
            store.release(&claim).await?;
        }
        let turn = queued(&claim);
        store.acquire_in_turn(&claim, &turn).await?;
        store.leave_queue(&claim.key, claim.owner).await?;
        store.depart(&claim, &Departure::HandOver).await?;
    }
    Ok(())
}

#[tokio::test]
async fn the_documented_rights_suffice() {
    let server = RedisServer::start();
    for keys in ["~*", "~app:* ~leasehold:*"] {
        let rights = documented_rights().join(" ").replace("~*", keys);
        let user: Vec<&str> = ["ACL", "SETUSER", "locks", "reset"]
            .into_iter()
            .chain(rights.split(' '))
            .collect();
        assert_eq!(server.command(&user), Reply::Status("OK".into()));
        let url = format!(
            "redis://locks:secret@127.0.0.1:{}?prefix=app:",
            server.port()
        );
        let store = RedisMember::new(url).unwrap();
        everything(&store).await.unwrap();
        let mine = claim("who");
        granted(&store, &mine).await;
        let holders = store.holders(&key("who")).await.unwrap();
        assert!(holders[0].client.is_some());
        released(&store, &mine).await;
    }
}

#[tokio::test]
async fn each_missing_right_is_named() {
    let server = RedisServer::start();
    // What may be missing without an error: a foreign type has no name, nobody is told anything, and
    // the member is not durable.
    let harmless = ["+config|get", "+type", "+subscribe", "+publish"];
    let rights = documented_rights();
    let needed = rights
        .iter()
        .filter(|right| right.starts_with('+') && !harmless.contains(right));
    for (number, missing) in needed.enumerate() {
        let user = format!("user{number}");
        let mut command = vec!["ACL", "SETUSER", &user, "reset"];
        command.extend(rights.iter().filter(|right| *right != missing));
        assert_eq!(server.command(&command), Reply::Status("OK".into()));
        if *missing == "+script|load" {
            server.command(&["SCRIPT", "FLUSH"]);
        }
        server.command(&["FLUSHDB"]);
        let url = format!("redis://{user}:secret@127.0.0.1:{}", server.port());
        let error = everything(&RedisMember::new(url).unwrap()).await;
        let error = error.expect_err(missing);
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::Refused, "{text}");
        assert!(
            text.contains(missing) && text.contains(&user),
            "{missing}: {text}"
        );
        assert!(!format!("{error:?}").contains("secret"));
    }
}

fn without(server: &RedisServer, user: &str, missing: &[&str]) -> RedisMember {
    let rights = documented_rights();
    let rights = rights.iter().filter(|right| !missing.contains(right));
    let mut command = vec!["ACL", "SETUSER", user, "reset"];
    command.extend(rights);
    assert_eq!(server.command(&command), Reply::Status("OK".into()));
    RedisMember::new(format!("redis://{user}:secret@127.0.0.1:{}", server.port())).unwrap()
}

#[tokio::test]
async fn without_the_rights_for_the_card_the_server_is_a_store_of_its_own() {
    let server = RedisServer::start();
    let whole = member(&server);
    let edit = card_edit(&whole.presence().await.unwrap(), "a");
    assert!(whole.write_card(&edit).await.unwrap());
    server.command(&["HSET", "foreign", "uuid:1", "1"]);
    for missing in [
        &["+hget"][..],
        &["+hgetall"],
        // What sufficed before there were cards.
        &["+hget", "+config|get"],
        &["+hget", "+hset", "+hgetall", "+type", "+config|get"],
    ] {
        let client = Client::new(without(&server, "locks", missing));
        let guard = client.lock("deploy").try_acquire().await.unwrap().unwrap();
        guard.release().await.unwrap();
        let store = without(&server, "locks", missing);
        for _ in 0..2 {
            let presence = store.presence().await.unwrap();
            assert_eq!(presence.card, None);
            let unfit = presence.unfit.unwrap();
            assert!(unfit.contains("lacks the right +hget"), "{unfit}");
        }
        for mine in [claim("deploy"), shared("deploy")] {
            let grant = granted(&store, &mine).await;
            assert!(grant.sample.is_some());
            let sealed = store.seal(&mine, next(&grant)).await.unwrap();
            assert_eq!(sealed.answer, leasehold::Seal::Sealed);
            let answers = store.renew(&[held(&mine, &grant)]).await;
            assert!(matches!(answers[..], [Renewal::Renewed]), "{answers:?}");
            released(&store, &mine).await;
        }
        let error = refused(&store, &claim("foreign")).await;
        assert_eq!(error.kind(), ErrorKind::ForeignLock, "{error}");
    }
}

#[tokio::test]
async fn keys_that_a_user_may_not_use_are_named() {
    let server = RedisServer::start();
    let mut command = vec!["ACL", "SETUSER", "locks", "reset"];
    let rights = documented_rights();
    let rights = rights
        .iter()
        .map(|right| if *right == "~*" { "~app:*" } else { right });
    command.extend(rights);
    server.command(&command);
    let url = format!("redis://locks:secret@127.0.0.1:{}", server.port());
    for name in ["deploy", "app:deploy"] {
        for claim in [claim(name), shared(name)] {
            let store = RedisMember::new(&url).unwrap();
            let error = refused(&store, &claim).await;
            assert_eq!(error.kind(), ErrorKind::Refused);
            assert!(error.to_string().contains("leasehold:*"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_client_clock_more_than_a_day_off_is_refused_and_changes_nothing() {
    const DAY: u64 = 24 * 60 * 60 * 1_000_000;
    let server = RedisServer::start();
    let member = member(&server);
    let right = claim("x").proposal.as_micros();
    for wrong in [right - DAY - DAY / 8, right + 400 * DAY, 5] {
        let mut claim = claim("x");
        claim.proposal = WallTime::from_micros(wrong);
        let error = refused(&member, &claim).await;
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(error.effect(), Effect::None);
        assert!(
            error.to_string().contains("days apart: at most 1"),
            "{error}"
        );
    }
    assert_eq!(server.command(&["DBSIZE"]), Reply::Integer(0));
    let mut claim = claim("x");
    claim.proposal = WallTime::from_micros(right - DAY / 2);
    granted(&member, &claim).await;
}
