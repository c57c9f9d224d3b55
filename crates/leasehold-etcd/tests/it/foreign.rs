//! `etcdctl lock` and the Lock RPC, which is Go's `concurrency.Mutex` in the server, contend for the same locks.

use std::fs;
use std::process::{Child, Command, Stdio};

use http::uri::PathAndQuery;
use leasehold::store::background::spawn;
use leasehold::{Client, Key, Mode};
use leasehold_testkit::servers::{EtcdServer, until};
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

use crate::{LONG, client, lock, url};

/// A command under `etcdctl lock`, which runs until a file exists.
struct Etcdctl {
    folder: TempDir,
    child: Child,
}

impl Etcdctl {
    fn lock(server: &EtcdServer, name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = "touch began; while [ ! -e go ]; do sleep 0.02; done";
        let mut command: Command =
            server.etcdctl_command(&["lock", name, "--", "sh", "-c", script]);
        command.current_dir(folder.path()).stdout(Stdio::null());
        let child = command.spawn().unwrap();
        Self { folder, child }
    }

    fn has_begun(&self) -> bool {
        self.folder.path().join("began").exists()
    }

    fn holding(server: &EtcdServer, name: &str) -> Self {
        let locked = Self::lock(server, name);
        until("etcdctl has the lock", || locked.has_begun());
        locked
    }

    fn finish(mut self) {
        fs::write(self.folder.path().join("go"), "").unwrap();
        // Some versions do not pass on the exit code of the command.
        self.child.wait().unwrap();
    }
}

pub(crate) fn entries(server: &EtcdServer, name: &str) -> usize {
    let output = server.etcdctl(&["get", "--prefix", "--keys-only", &format!("{name}/")]);
    let keys = String::from_utf8(output.stdout).unwrap();
    keys.lines().filter(|line| !line.is_empty()).count()
}

async fn is_busy(client: &Client, mode: Mode) -> bool {
    let tried = lock(client, "job").mode(mode).try_acquire().await.unwrap();
    tried.is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_of_etcdctl_keeps_us_out() {
    let server = EtcdServer::start();
    let client = client(&url(&server));
    let foreign = Etcdctl::holding(&server, "job");
    for mode in [Mode::Exclusive, Mode::Shared] {
        assert!(is_busy(&client, mode).await);
        let ahead = lock(&client, "job").mode(mode).barging(true);
        assert!(
            ahead.try_acquire().await.unwrap().is_none(),
            "ahead of a holder"
        );
    }
    let holders = client.holders(&Key::new("job").unwrap()).await.unwrap();
    assert!(
        holders[0].owner.is_none() && holders[0].form.is_some(),
        "{holders:?}"
    );
    assert!(holders[0].remaining.is_some());
    let waiting = lock(&client, "job").wait(LONG);
    let waiting = spawn(async move { waiting.acquire().await });
    until("we are in the queue", || entries(&server, "job") == 2);
    foreign.finish();
    let guard = waiting.await.unwrap().unwrap();
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn our_lock_keeps_etcdctl_out() {
    let server = EtcdServer::start();
    let client = client(&url(&server));
    for mode in [Mode::Exclusive, Mode::Shared] {
        let guard = lock(&client, "job").mode(mode).acquire().await.unwrap();
        let foreign = Etcdctl::lock(&server, "job");
        until("etcdctl is in the queue", || entries(&server, "job") == 2);
        assert!(!foreign.has_begun());
        // No client of ours passes it.
        let reader = lock(&client, "job").mode(Mode::Shared);
        assert!(reader.clone().try_acquire().await.unwrap().is_none());
        assert!(reader.barging(true).try_acquire().await.unwrap().is_none());
        guard.release().await.unwrap();
        until("etcdctl has the lock", || foreign.has_begun());
        assert!(is_busy(&client, Mode::Exclusive).await);
        foreign.finish();
        until("etcdctl has freed it", || entries(&server, "job") == 0);
    }
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct LockRequest {
    #[prost(bytes = "vec", tag = "1")]
    name: Vec<u8>,
    #[prost(int64, tag = "2")]
    lease: i64,
}

/// The answer to `Lock`, and the request of `Unlock`, which has the same field under another number.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct LockResponse {
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct UnlockRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

async fn call<Q, A>(channel: &Channel, path: &'static str, request: Q) -> A
where
    Q: prost::Message + 'static,
    A: prost::Message + Default + 'static,
{
    let mut grpc = tonic::client::Grpc::new(channel.clone());
    grpc.ready().await.unwrap();
    let request = tonic::Request::new(request);
    let path = PathAndQuery::from_static(path);
    let answer = grpc.unary(request, path, ProstCodec::default()).await;
    answer.unwrap().into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_rpc_and_we_take_turns() {
    let server = EtcdServer::start();
    let client = client(&url(&server));
    let granted = server.etcdctl(&["lease", "grant", "60"]);
    let granted = String::from_utf8(granted.stdout).unwrap();
    let lease = granted.split(' ').nth(1).unwrap();
    let lease = i64::from_str_radix(lease, 16).unwrap();
    let address = format!("http://127.0.0.1:{}", server.port());
    let channel = Endpoint::from_shared(address)
        .unwrap()
        .connect()
        .await
        .unwrap();
    let ask = || {
        let channel = channel.clone();
        let name = b"job".to_vec();
        spawn(async move {
            let request = LockRequest { name, lease };
            call::<_, LockResponse>(&channel, "/v3lockpb.Lock/Lock", request).await
        })
    };
    let ours = lock(&client, "job").acquire().await.unwrap();
    let theirs = ask();
    until("the RPC is in the queue", || entries(&server, "job") == 2);
    assert!(!theirs.is_finished());
    ours.release().await.unwrap();
    let key = theirs.await.unwrap().key;
    assert!(is_busy(&client, Mode::Exclusive).await);
    let waiting = lock(&client, "job").wait(LONG);
    let waiting = spawn(async move { waiting.acquire().await });
    until("we are in the queue", || entries(&server, "job") == 2);
    let _: LockResponse = call(&channel, "/v3lockpb.Lock/Unlock", UnlockRequest { key }).await;
    let guard = waiting.await.unwrap().unwrap();
    guard.release().await.unwrap();
}
