//! What a user of the server needs.

use std::time::Duration;

use leasehold::look::Pattern;
use leasehold::store::background;
use leasehold::{Client, Error, ErrorKind};
use leasehold_redis::{RedisMember, RedisStore};
use leasehold_testkit::servers::RedisServer;

use crate::support::{
    client, documented_rights, hold, member_record_edit, pass, permit, queued, refused, set_user,
    share,
};

fn url(server: &RedisServer, user: &str, rest: &str) -> String {
    format!("redis://{user}:secret@127.0.0.1:{}{rest}", server.port())
}

/// Does everything that a client does at a server. The first error ends it.
async fn everything(url: &str) -> Result<(), Error> {
    let member = RedisMember::new(url)?;
    let edit = member_record_edit(&member.status().await?, member.id().as_str());
    member.write_member_record(&edit).await?;
    member.observe(&edit.seen).await?;
    let (locks, other) = (
        Client::new(RedisStore::new([url])?),
        RedisStore::new([url])?,
    );
    let other = Client::new(other);
    let lock = locks.lock("deploy").ttl(Duration::from_secs(1));
    let guard = lock.try_acquire().await?.expect("a free lock");
    guard.deadline_moved(guard.deadline()).await;
    let waits = background::spawn(other.lock("deploy").wait(Duration::from_secs(9)).acquire());
    locks.holders("deploy").await?;
    while locks.waiters("deploy").await?.is_empty() {}
    locks.list_locks(&Pattern::new("dep*")?, 10).await?;
    guard.downgrade().await?;
    guard.release().await?;
    waits.await.unwrap()?.release().await?;
    let semaphore = locks.semaphore("workers", 3);
    if let Some(permit) = semaphore.try_acquire().await? {
        permit.release().await?;
    }
    locks.close(Duration::from_secs(30)).await
}

#[tokio::test]
async fn documented_rights_suffice() {
    let server = RedisServer::start();
    for keys in ["~*", "~app:* ~leasehold:*"] {
        let rights = documented_rights("locks").join(" ").replace("~*", keys);
        let rights: Vec<&str> = rights.split(' ').collect();
        set_user(&server, "locks", &rights);
        server.command(&["DEL", "leasehold:member_record"]);
        let url = url(&server, "locks", "?prefix=app:");
        everything(&url).await.unwrap();
        let locks = crate::support::client_at(&url);
        let _guard = hold(&locks, "who").await;
        let holders = locks.holders("who").await.unwrap();
        assert!(holders[0].client.is_some());
    }
}

#[tokio::test]
async fn missing_rights_for_locks_are_named() {
    let server = RedisServer::start();
    let rights = documented_rights("locks");
    for missing in ["+set", "+evalsha", "+zadd", "+get", "+time", "+script|load"] {
        let fewer: Vec<&str> = rights
            .iter()
            .filter(|it| **it != missing)
            .copied()
            .collect();
        set_user(&server, "locks", &fewer);
        server.command(&["SCRIPT", "FLUSH"]);
        let locks = crate::support::client_at(&url(&server, "locks", ""));
        let error = refused(&locks, "deploy").await;
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::Refused, "{text}");
        assert!(
            text.contains(missing) && text.contains("locks"),
            "{missing}: {text}"
        );
        assert!(!format!("{error:?}").contains("secret"));
    }
}

#[tokio::test]
async fn one_server_needs_no_member_record() {
    let server = RedisServer::start();
    let rights = documented_rights("locks");
    for missing in [&["+hget"][..], &["+hget", "+config|get"]] {
        let fewer = rights.iter().filter(|it| !missing.contains(it)).copied();
        set_user(&server, "locks", &fewer.collect::<Vec<_>>());
        let url = url(&server, "locks", "");
        let locks = crate::support::client_at(&url);
        pass(&locks, "deploy").await;
        share(&locks, "deploy").await.release().await.unwrap();
        let status = RedisMember::new(&url).unwrap().status().await.unwrap();
        assert_eq!(status.member_record, None);
        let unfit = status.unfit.unwrap();
        assert!(unfit.contains("lacks the right +hget"), "{unfit}");
    }
}

#[tokio::test]
async fn keys_without_rights_are_named() {
    let server = RedisServer::start();
    let rights = documented_rights("locks");
    let rights = rights
        .iter()
        .map(|right| if *right == "~*" { "~app:*" } else { right });
    set_user(&server, "locks", &rights.collect::<Vec<_>>());
    let locks = crate::support::client_at(&url(&server, "locks", ""));
    for name in ["deploy", "app:deploy"] {
        let error = refused(&locks, name).await;
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("leasehold:*"), "{error}");
    }
}

/// Without notifications a waiter asks from time to time.
#[tokio::test]
async fn lock_is_handed_over_without_notifications() {
    let old = RedisServer::builder().directive("rename-command", "HELLO \"\"");
    for (server, missing) in [
        (
            RedisServer::start(),
            &["+publish", "&leasehold:inbox:*"][..],
        ),
        (RedisServer::start(), &["+subscribe"]),
        (old.start(), &[]),
    ] {
        let rights = documented_rights("locks");
        let fewer = rights.iter().filter(|it| !missing.contains(it)).copied();
        set_user(&server, "locks", &fewer.collect::<Vec<_>>());
        let waiter = crate::support::client_at(&url(&server, "locks", ""));
        let holder = client(&server);
        let guard = hold(&holder, "deploy").await;
        let lock = waiter.lock("deploy").wait(Duration::from_secs(10));
        let waits = background::spawn(lock.acquire());
        if missing.is_empty() {
            // A waiter that cannot listen does not stay in the queue for long.
            permit(&holder, "workers", 1).await.release().await.unwrap();
        } else if missing != ["+subscribe"] {
            queued(&server, "deploy", 1).await;
        }
        guard.release().await.unwrap();
        waits.await.unwrap().unwrap().release().await.unwrap();
    }
}
