//! Locks of Curator and kazoo.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use leasehold::{ErrorKind, Mode};
use leasehold_testkit::servers::{Zookeeper, ZookeeperConnection, java_program};
use leasehold_zookeeper::ZooKeeperStore;

use crate::support::{client, lock, until_waiting};

/// A client of another library, in a process of its own.
pub(crate) struct Contender {
    process: Child,
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Contender {
    pub(crate) fn kazoo(servers: &Zookeeper, path: &str) -> Self {
        #[expect(clippy::disallowed_methods, reason = "a test's way to its peer")]
        let named = std::env::var_os("LEASEHOLD_TEST_PYTHON");
        let python = named.map_or_else(
            || {
                PathBuf::from(concat!(
                    env!("CARGO_MANIFEST_DIR"),
                    "/../../target/test-venv/bin/python"
                ))
            },
            PathBuf::from,
        );
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ensemble/contender.py");
        let mut command = Command::new(python);
        command.arg(script);
        Self::start(command, servers, path)
    }

    fn curator(servers: &Zookeeper, folder: &std::path::Path, path: &str) -> Self {
        let source = include_str!("Contender.java");
        Self::start(
            java_program(servers, folder, "Contender", source),
            servers,
            path,
        )
    }

    fn start(mut command: Command, servers: &Zookeeper, path: &str) -> Self {
        let hosts = servers.url().trim_start_matches("zk://").to_owned();
        command
            .args([hosts.as_str(), path])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = command
            .spawn()
            .expect("a client of another library; run `cargo xtask setup`");
        let commands = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap()).lines();
        Self {
            process,
            commands,
            answers,
        }
    }

    pub(crate) fn tell(&mut self, command: &str) {
        writeln!(self.commands, "{command}").unwrap();
    }

    pub(crate) fn answer(&mut self) -> String {
        self.answers
            .next()
            .expect("the other client is there")
            .unwrap()
    }

    pub(crate) fn ask(&mut self, command: &str) -> String {
        self.tell(command);
        self.answer()
    }
}

impl Drop for Contender {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Both libraries exclude each other, and wait in one queue.
async fn contend(servers: &Zookeeper, other: &mut Contender) {
    let locks = &client(&(servers.url() + "/locks"));
    assert_eq!(other.ask("acquire 20000"), "held");
    assert!(locks.lock("job").try_acquire().await.unwrap().is_none());
    let reading = locks.lock("job").mode(Mode::Shared).try_acquire().await;
    assert!(reading.unwrap().is_none());
    let holders = locks.holders("job").await.unwrap();
    assert_eq!((holders.len(), holders[0].owner), (1, None));
    assert_eq!(other.ask("release"), "free");
    let guard = lock(locks, "job").acquire().await.unwrap();
    assert_eq!(other.ask("acquire 300"), "busy");
    // It waits behind our holder, and before our waiter.
    other.tell("acquire 20000");
    let mut server = ZookeeperConnection::open(servers.ports()[0], None);
    leasehold_testkit::servers::until("it waits", || server.children("/locks/job").len() == 2);
    let waiter = lock(locks, "job");
    let (next, ()) = tokio::join!(waiter.acquire(), async {
        until_waiting(locks, "job", 1).await;
        guard.release().await.unwrap();
        assert_eq!(other.answer(), "held");
        assert!(locks.lock("job").try_acquire().await.unwrap().is_none());
        assert_eq!(other.ask("release"), "free");
    });
    let reader = next.unwrap();
    assert_eq!(other.ask("acquire 300"), "busy");
    reader.release().await.unwrap();
    // It waits for a reader of ours, too.
    let reader = lock(locks, "job")
        .mode(Mode::Shared)
        .acquire()
        .await
        .unwrap();
    assert_eq!(other.ask("acquire 300"), "busy");
    reader.release().await.unwrap();
    assert_eq!(other.ask("acquire 20000"), "held");
}

#[tokio::test]
async fn zookeeper_locks_and_curators_exclude_each_other() {
    let servers = Zookeeper::start();
    let folder = tempfile::tempdir().unwrap();
    let mut curator = Contender::curator(&servers, folder.path(), "/locks/job");
    contend(&servers, &mut curator).await;
}

#[tokio::test]
async fn zookeeper_locks_and_those_of_kazoo_exclude_each_other() {
    let servers = Zookeeper::start();
    let mut kazoo = Contender::kazoo(&servers, "/locks/job");
    contend(&servers, &mut kazoo).await;
}

#[tokio::test]
async fn zookeeper_locks_that_would_not_see_ours_are_refused() {
    let servers = Zookeeper::start();
    let locks = client(&(servers.url() + "/locks"));
    let mut server = ZookeeperConnection::open(servers.ports()[0], None);
    server.create("/locks", "");
    // The server removes no folder like this one while it is empty.
    server.create("/locks/job", "");
    for name in [
        "6f2a__rlock__0000000001",
        "_c_1-__WRIT__0000000002",
        "_c_1-lease-0000000003",
    ] {
        server.create(&format!("/locks/job/{name}"), "");
        let error = locks.lock("job").try_acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IncompatibleKey, "{error}");
        assert!(error.to_string().contains(name), "{error}");
        server.delete_all(&format!("/locks/job/{name}"));
    }
}

/// The node of the holder is a fence for data in ZooKeeper.
#[tokio::test]
async fn zookeeper_data_of_kazoo_is_fenced_by_the_node() {
    let servers = Zookeeper::start();
    let url = servers.url() + "/locks";
    let (locks, store) = (client(&url), ZooKeeperStore::new(&url).unwrap());
    let guard = lock(&locks, "job").acquire().await.unwrap();
    let node = store.holder_node(guard.key(), guard.fence()).await.unwrap();
    let node = node.expect("the node of the holder");
    let mut kazoo = Contender::kazoo(&servers, "/other");
    assert_eq!(
        kazoo.ask(&format!("write {node} /resource first")),
        "written"
    );
    let (key, fence) = (guard.key().clone(), guard.fence());
    guard.release().await.unwrap();
    assert_eq!(kazoo.ask(&format!("write {node} /resource late")), "fenced");
    assert_eq!(store.holder_node(&key, fence).await.unwrap(), None);
    let mut server = ZookeeperConnection::open(servers.ports()[0], None);
    assert_eq!(server.data("/resource").as_deref(), Some("first"));
}
