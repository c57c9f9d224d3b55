use std::process::Stdio;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use http::uri::PathAndQuery;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::Request;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

use super::messages::{
    Compare, LeaseGrant, LeaseId, Lock, Locked, Nothing, Operation, Put, Transacted, Transaction,
    Unlock,
};
use super::unknown;
use crate::error::Fallible;
use crate::worker::{Handle, Task, held, obey};

/// In seconds.
const TTL: i64 = 30;

/// How long one attempt may take at a lock that knows no attempt without waiting.
const TRY_MAX: Duration = Duration::from_millis(500);

pub(super) async fn run(part: &str, task: &Task) -> Fallible {
    let port = task.port()?;
    match part {
        "bare" => obey(bare(port, task).await?, task).await,
        "rpc" => obey(rpc(port, task, false).await?, task).await,
        "rpc-leases" => obey(rpc(port, task, true).await?, task).await,
        "rpc-held" => held::obey_as_peer(hold_rpc(port, task)).await,
        "etcdctl" => obey(etcdctl(port, task), task).await,
        _ => Err(unknown(part)),
    }
}

/// Calls methods of the server over one connection.
#[derive(Clone)]
struct Caller(Channel);

impl Caller {
    async fn connect(port: u16) -> Fallible<Self> {
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"))?;
        Ok(Self(endpoint.tcp_nodelay(true).connect().await?))
    }

    async fn call<Q, A>(&self, method: &'static str, request: Q) -> Fallible<A>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let mut grpc = Grpc::new(self.0.clone());
        grpc.ready().await?;
        let path = PathAndQuery::from_static(method);
        let codec = ProstCodec::default();
        let answer = grpc.unary(Request::new(request), path, codec).await?;
        Ok(answer.into_inner())
    }

    /// Has a lease granted, and returns its id.
    async fn grant(&self) -> Fallible<i64> {
        static LEASES: AtomicI64 = AtomicI64::new(1);
        let id = LEASES.fetch_add(1, Ordering::Relaxed) + (i64::from(std::process::id()) << 32);
        let lease = LeaseGrant { ttl: TTL, id };
        let _: Nothing = self.call("/etcdserverpb.Lease/LeaseGrant", lease).await?;
        Ok(id)
    }

    async fn revoke(&self, id: i64) -> Fallible {
        let lease = LeaseId { id };
        let _: Nothing = self.call("/etcdserverpb.Lease/LeaseRevoke", lease).await?;
        Ok(())
    }

    async fn lock(&self, name: &str, lease: i64) -> Fallible<Vec<u8>> {
        let name = name.as_bytes().to_vec();
        let locked: Locked = self
            .call("/v3lockpb.Lock/Lock", Lock { name, lease })
            .await?;
        Ok(locked.key)
    }

    async fn unlock(&self, key: Vec<u8>) -> Fallible {
        let _: Nothing = self.call("/v3lockpb.Lock/Unlock", Unlock { key }).await?;
        Ok(())
    }
}

/// A key with a lease of its own, put unless it exists: as many round trips as Leasehold makes.
struct Bare {
    caller: Caller,
    key: Vec<u8>,
}

async fn bare(port: u16, task: &Task) -> Fallible<Vec<Bare>> {
    let caller = Caller::connect(port).await?;
    let handle = |key: String| Bare {
        caller: caller.clone(),
        key: key.into_bytes(),
    };
    Ok(task.keys().map(handle).collect())
}

impl Handle for Bare {
    /// The lease.
    type Held = i64;

    async fn try_acquire(&self) -> Fallible<Option<i64>> {
        let lease = self.caller.grant().await?;
        let put = Put {
            key: self.key.clone(),
            value: b"x".to_vec(),
            lease,
        };
        let transaction = Transaction {
            compare: vec![Compare::is_absent(&self.key)],
            success: vec![Operation { put: Some(put) }],
        };
        let done: Transacted = self
            .caller
            .call("/etcdserverpb.KV/Txn", transaction)
            .await?;
        if !done.succeeded {
            self.caller.revoke(lease).await?;
            return Ok(None);
        }
        Ok(Some(lease))
    }

    async fn release(&self, lease: i64) -> Fallible {
        self.caller.revoke(lease).await
    }
}

/// The lock service of the server. Its locks belong to a lease, so each waiter has its own: one for good, or another for
/// each lock.
struct Rpc {
    caller: Caller,
    name: String,
    lease: i64,
    renews_lease: bool,
}

async fn rpc(port: u16, task: &Task, renews_lease: bool) -> Fallible<Vec<Rpc>> {
    let caller = Caller::connect(port).await?;
    let mut handles = Vec::new();
    for name in task.keys() {
        handles.push(Rpc {
            lease: caller.grant().await?,
            caller: caller.clone(),
            name,
            renews_lease,
        });
    }
    Ok(handles)
}

impl Handle for Rpc {
    /// The key of the lock, and its lease.
    type Held = (Vec<u8>, i64);

    async fn acquire(&self) -> Fallible<(Vec<u8>, i64)> {
        let lease = match self.renews_lease {
            true => self.caller.grant().await?,
            false => self.lease,
        };
        Ok((self.caller.lock(&self.name, lease).await?, lease))
    }

    async fn try_acquire(&self) -> Fallible<Option<(Vec<u8>, i64)>> {
        match timeout(TRY_MAX, self.acquire()).await {
            Ok(held) => held.map(Some),
            Err(_) => Ok(None),
        }
    }

    async fn release(&self, (key, lease): (Vec<u8>, i64)) -> Fallible {
        self.caller.unlock(key).await?;
        if self.renews_lease {
            self.caller.revoke(lease).await?;
        }
        Ok(())
    }
}

/// Takes all locks of the task with one lease, which a stream renews.
async fn hold_rpc(port: u16, task: &Task) -> Fallible {
    let caller = Caller::connect(port).await?;
    let id = caller.grant().await?;
    let (sender, mut requests) = mpsc::unbounded_channel();
    tokio::spawn(keep_alive(sender, id));
    let requests = futures_util::stream::poll_fn(move |context| requests.poll_recv(context));
    let mut grpc = Grpc::new(caller.0.clone());
    grpc.ready().await?;
    let path = PathAndQuery::from_static("/etcdserverpb.Lease/LeaseKeepAlive");
    let codec: ProstCodec<LeaseId, Nothing> = ProstCodec::default();
    let answers = grpc.streaming(Request::new(requests), path, codec).await?;
    let mut answers = answers.into_inner();
    tokio::spawn(async move { while let Ok(Some(_)) = answers.message().await {} });
    for number in 0..task.waiters {
        caller.lock(&format!("held/{number}"), id).await?;
    }
    Ok(())
}

/// Asks for a renewal after each third of the TTL.
async fn keep_alive(sender: mpsc::UnboundedSender<LeaseId>, id: i64) {
    let mut ticks = tokio::time::interval(Duration::from_secs(TTL.unsigned_abs()) / 3);
    while sender.send(LeaseId { id }).is_ok() {
        ticks.tick().await;
    }
}

/// `etcdctl lock`: a process holds the lock until a signal.
struct Etcdctl {
    port: u16,
    name: String,
}

fn etcdctl(port: u16, task: &Task) -> Vec<Etcdctl> {
    task.keys().map(|name| Etcdctl { port, name }).collect()
}

impl Etcdctl {
    fn start(&self) -> Fallible<Child> {
        // It ends with this worker, also while it waits in the queue.
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "etcdctl"])
            .env("ETCDCTL_API", "3")
            .arg(format!("--endpoints=http://127.0.0.1:{}", self.port))
            .args(["lock", &self.name])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        Ok(process?)
    }

    /// Waits until the process says that it holds the lock.
    async fn holds(process: &mut Child) -> Fallible {
        let output = process.stdout.as_mut().ok_or("a process without output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).await?;
        match line.is_empty() {
            true => Err("etcdctl ended without the lock".into()),
            false => Ok(()),
        }
    }
}

impl Handle for Etcdctl {
    type Held = Child;

    async fn acquire(&self) -> Fallible<Child> {
        let mut process = self.start()?;
        Self::holds(&mut process).await?;
        Ok(process)
    }

    async fn try_acquire(&self) -> Fallible<Option<Child>> {
        let mut process = self.start()?;
        match timeout(TRY_MAX, Self::holds(&mut process)).await {
            Ok(held) => held.map(|()| Some(process)),
            // It leaves the queue.
            Err(_) => self.release(process).await.map(|()| None),
        }
    }

    async fn release(&self, mut held: Child) -> Fallible {
        let pid = held.id().ok_or("etcdctl has ended")?;
        kill(Pid::from_raw(pid.try_into()?), Signal::SIGTERM)?;
        // Its exit code is 1 after a signal.
        held.wait().await?;
        Ok(())
    }
}
