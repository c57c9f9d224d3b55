use leasehold::Client;
use leasehold::look::ClientInfo;
use leasehold_testkit::servers::RedisServer;

use crate::support::{left, store};

/// Returns a client of the server, and its program.
fn named(server: &RedisServer, program: &str) -> Client {
    let client = Client::builder(store(server)).program(program);
    client
        .user("ann")
        .label("blue")
        .command("deploy.sh\n--all")
        .build()
}

async fn holder(client: &Client, name: &str) -> ClientInfo {
    let holders = client.holders(name).await.unwrap();
    let [holder] = holders.as_slice() else {
        panic!("{holders:?}")
    };
    holder.client.clone().expect("a known holder")
}

#[tokio::test]
async fn holder_is_shown_with_what_it_says() {
    let server = RedisServer::start();
    let locks = named(&server, "first");
    let _guard = locks.lock("deploy").acquire().await.unwrap();
    let holder = holder(&named(&server, "other"), "deploy").await;
    assert_eq!(holder.program, "first");
    assert_eq!(holder.user.as_deref(), Some("ann"));
    assert_eq!(holder.label.as_deref(), Some("blue"));
    assert_eq!(holder.command.as_deref(), Some("deploy.sh\\n--all"));
}

#[tokio::test]
async fn handle_keeps_its_first_holder() {
    let server = RedisServer::start();
    let locks = named(&server, "first");
    let guard = locks.lock("deploy").acquire().await.unwrap();
    let record = format!("leasehold:client:{}", guard.owner().client());
    let handle = guard.into_handle().unwrap();
    // Nearly the end of the record.
    server.command(&["PEXPIRE", &record, "10000"]);
    let other = named(&server, "second");
    let handle = other.renew(&handle).await.unwrap();
    assert_eq!(holder(&other, "deploy").await.program, "first");
    assert!(left(&server, &record) > left(&server, "deploy"));
    let guard = named(&server, "third").adopt(&handle).await.unwrap();
    assert_eq!(holder(&other, "deploy").await.program, "first");
    guard.release().await.unwrap();
}

/// Earlier versions write fewer fields, and later ones may write more.
#[tokio::test]
async fn records_of_other_versions_are_read() {
    let server = RedisServer::start();
    let locks = named(&server, "first");
    let guard = locks.lock("deploy").acquire().await.unwrap();
    let record = format!("leasehold:client:{}", guard.owner().client());
    server.command(&["HDEL", &record, "user", "label", "command"]);
    server.command(&["HSET", &record, "colour", "green"]);
    let holder = holder(&locks, "deploy").await;
    assert_eq!(holder.program, "first");
    assert_eq!(
        (holder.user, holder.label, holder.command),
        (None, None, None)
    );
}
