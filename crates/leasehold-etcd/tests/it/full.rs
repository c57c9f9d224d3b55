//! A server whose database is full (alarm NOSPACE) is not ready: attempts wait for it.

use leasehold::store::background::spawn;
use leasehold_testkit::servers::EtcdServer;

use crate::{LONG, client, lock, url};

fn etcdctl(server: &EtcdServer, words: &[&str]) -> String {
    let output = server.etcdctl(words);
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// Writes until the server raises the alarm.
fn fill(server: &EtcdServer) {
    let value = "x".repeat(100_000);
    let is_full = || etcdctl(server, &["put", "data", &value]).contains("space exceeded");
    assert!((0..200).any(|_| is_full()), "the database has room");
}

/// Makes room, and disarms the alarm.
fn make_room(server: &EtcdServer) {
    let fields = etcdctl(server, &["get", "data", "--write-out=fields"]);
    let mut lines = fields.lines();
    let revision = lines.find_map(|line| line.strip_prefix("\"Revision\" : "));
    etcdctl(server, &["compact", revision.unwrap()]);
    etcdctl(server, &["defrag"]);
    etcdctl(server, &["alarm", "disarm"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn full_server_is_waited_for() {
    let builder = EtcdServer::builder();
    let server = builder.argument("--quota-backend-bytes=4000000").start();
    let client = client(&url(&server));
    let held = lock(&client, "held").acquire().await.unwrap();
    fill(&server);
    let error = lock(&client, "job").try_acquire().await.unwrap_err();
    assert!(error.is_not_ready() && error.is_retryable(), "{error}");
    assert!(error.to_string().contains("alarm disarm"), "{error}");
    let waiting = lock(&client, "job").wait(LONG);
    let waiting = spawn(async move { waiting.acquire().await });
    make_room(&server);
    waiting.await.unwrap().unwrap().release().await.unwrap();
    held.release().await.unwrap();
}
