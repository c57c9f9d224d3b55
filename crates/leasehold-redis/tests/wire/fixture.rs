//! Clients that send the requests of the engine to a server, each over one RESP3 connection.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::env::{Entropy, SystemEntropy};
use leasehold::look::{ClientId, ClientInfo, Owner};
use leasehold::member::{FenceConfirmation, PermitSlot};
use leasehold::store::{LockRequest, Permits};
use leasehold::{Fence, Key, Mode};
use leasehold_quorum::{
    Lease, LeaseState, Notification, Position, Refusal, Reply, Request, Requeue, Successor,
};
use leasehold_redis::codec::{Codec, Decoded, inbox, read_notification};
use leasehold_redis::resp::{CommandWriter, Value};
use leasehold_testkit::servers::RedisServer;

pub(crate) const TTL: Duration = Duration::from_secs(60);

/// The instant at which all waits of these tests began, in microseconds.
const BEGAN: u64 = 1_763_637_400_000_000;

/// A server with a clock that the test moves.
pub(crate) fn server() -> RedisServer {
    RedisServer::builder().steppable_clock().start()
}

pub(crate) fn permits(count: u32) -> Mode {
    Mode::Permit(Permits::new(count).unwrap())
}

pub(crate) fn slot(number: u32) -> Option<PermitSlot> {
    Some(PermitSlot::new(number, Permits::new(Permits::MAX).unwrap()).unwrap())
}

/// Starts such a server, and connects a client.
pub(crate) fn start() -> (RedisServer, TestClient) {
    let server = server();
    let client = TestClient::connect(&server);
    (server, client)
}

pub(crate) fn lease(
    lock_request: &Arc<LockRequest>,
    fence: u64,
    slot: Option<PermitSlot>,
) -> Lease {
    Lease {
        lock_request: lock_request.clone(),
        fence: Fence::new(fence).unwrap(),
        slot,
    }
}

/// What a client writes requests to and reads answers from: a socket, or a server in memory.
pub(crate) trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// One client with one connection.
pub(crate) struct TestClient {
    pub(crate) codec: Codec,
    stream: BufReader<Box<dyn Stream>>,
    entropy: Box<dyn Entropy>,
    pushed: VecDeque<Vec<Value>>,
    waits: u64,
}

impl TestClient {
    /// Connects, subscribes to the client's channel, and reports that the client is alive.
    pub(crate) fn connect(server: &RedisServer) -> Self {
        Self::silent(server).listening()
    }

    /// Connects as a user of the server.
    pub(crate) fn connect_as(server: &RedisServer, user: &str, password: &str) -> Self {
        let mut client = Self::silent(server);
        client.command(&["HELLO", "3", "AUTH", user, password]);
        client.codec.user = user.into();
        client.listening()
    }

    /// Subscribes to the client's channel, and reports that the client is alive.
    pub(crate) fn listening(mut self) -> Self {
        let channel = inbox(self.codec.client);
        self.command(&["SUBSCRIBE", &channel]);
        self.heartbeat(&[]);
        self
    }

    /// Connects a client that neither listens nor is present.
    pub(crate) fn silent(server: &RedisServer) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(Box::new(stream), Box::new(SystemEntropy))
    }

    /// Begins a client that neither listens nor is present on an open connection.
    pub(crate) fn over(stream: Box<dyn Stream>, entropy: Box<dyn Entropy>) -> Self {
        let mut client = Self {
            codec: Codec {
                prefix: String::new(),
                user: "default".into(),
                client: ClientId::random(&*entropy),
            },
            stream: BufReader::new(stream),
            entropy,
            pushed: VecDeque::new(),
            waits: 0,
        };
        client.command(&["HELLO", "3"]);
        client
    }

    /// Returns a request of a new wait on `deploy`. Each request is a microsecond younger than the previous one.
    pub(crate) fn lock_request(&mut self, mode: Mode) -> Arc<LockRequest> {
        self.request_on("deploy", mode)
    }

    pub(crate) fn request_on(&mut self, key: &str, mode: Mode) -> Arc<LockRequest> {
        self.waits += 1;
        let began = WallTime::from_micros(BEGAN + self.waits);
        let id = self.codec.client;
        let owner = Owner::at(id, began, &*self.entropy);
        let info = Arc::new(ClientInfo::new(id, "host".into(), 1, "test".into(), began));
        let lock_request = LockRequest::new(Key::new(key).unwrap(), owner, TTL, began, info);
        Arc::new(lock_request.with_mode(mode))
    }

    /// Takes the lock for a new request, which must be granted.
    pub(crate) fn hold(&mut self, mode: Mode) -> Arc<LockRequest> {
        let lock_request = self.lock_request(mode);
        self.acquire(&lock_request, Position::None).granted();
        lock_request
    }

    /// Enters the queue with a new request.
    pub(crate) fn wait(&mut self, mode: Mode, ticket: u64) -> Arc<LockRequest> {
        let lock_request = self.lock_request(mode);
        self.acquire(&lock_request, Position::Ticket(ticket))
            .refused();
        lock_request
    }

    /// Returns the answer to a new request, which must be refused.
    pub(crate) fn refusal(&mut self, mode: Mode, position: Position) -> Refusal {
        let lock_request = self.lock_request(mode);
        self.acquire(&lock_request, position).refused()
    }

    pub(crate) fn acquire(
        &mut self,
        lock_request: &Arc<LockRequest>,
        position: Position,
    ) -> Answered {
        self.acquire_preferring(lock_request, position, None)
    }

    pub(crate) fn acquire_preferring(
        &mut self,
        lock_request: &Arc<LockRequest>,
        position: Position,
        preferred: Option<PermitSlot>,
    ) -> Answered {
        Answered(self.ask(&Request::Acquire {
            lock_request: lock_request.clone(),
            proposal: first_proposal(lock_request),
            position,
            preferred,
        }))
    }

    /// Asks for the lock with plain commands.
    pub(crate) fn try_acquire(&mut self, lock_request: &Arc<LockRequest>) -> Reply {
        let reply = self.ask(&Request::TryAcquire {
            lock_request: lock_request.clone(),
            proposal: first_proposal(lock_request),
            expire: true,
        });
        match reply {
            Reply::GrantedBehind => self.ask(&Request::DrawFence {
                lock_request: lock_request.clone(),
            }),
            other => other,
        }
    }

    /// Frees a lease with the script for locks without waiters. Returns whether it did.
    pub(crate) fn free(&mut self, lock_request: &Arc<LockRequest>) -> bool {
        let lock_request = lock_request.clone();
        match self.ask(&Request::Free { lock_request }) {
            Reply::Released { freed, .. } => freed,
            Reply::Contended => false,
            other => panic!("a release is answered {other:?}"),
        }
    }

    pub(crate) fn release(&mut self, lock_request: &Arc<LockRequest>) -> bool {
        self.release_to(lock_request, None, None).0
    }

    /// Returns whether the lease was freed, and what the successor was granted.
    pub(crate) fn release_to(
        &mut self,
        lock_request: &Arc<LockRequest>,
        requeue: Option<Requeue>,
        successor: Option<(&Arc<LockRequest>, u64)>,
    ) -> (bool, Option<(Fence, Option<PermitSlot>)>) {
        let successor = successor.map(|(lock_request, ticket)| Successor {
            lock_request: lock_request.clone(),
            proposal: first_proposal(lock_request),
            ticket,
            preferred: None,
        });
        let request = Request::Release {
            lock_request: lock_request.clone(),
            requeue,
            successor,
        };
        match self.ask(&request) {
            Reply::Released { freed, successor } => (freed, successor),
            other => panic!("a release is answered {other:?}"),
        }
    }

    pub(crate) fn dequeue(&mut self, lock_request: &Arc<LockRequest>) {
        let lock_request = lock_request.clone();
        match self.ask(&Request::Dequeue { lock_request }) {
            Reply::Dequeued => {}
            other => panic!("the end of a wait is answered {other:?}"),
        }
    }

    pub(crate) fn renew(&mut self, lock_request: &Arc<LockRequest>) -> LeaseState {
        self.renew_all(vec![lease(lock_request, 1, None)]).remove(0)
    }

    pub(crate) fn renew_all(&mut self, leases: Vec<Lease>) -> Vec<LeaseState> {
        match self.ask(&Request::Renew(leases)) {
            Reply::Renewed(states) => states,
            other => panic!("a renewal is answered {other:?}"),
        }
    }

    /// Returns whether the lease was restored.
    pub(crate) fn repair(&mut self, lock_request: &Arc<LockRequest>, fence: u64) -> bool {
        match self.ask(&Request::Repair(vec![lease(lock_request, fence, None)])) {
            Reply::Repaired(restored) => restored[0],
            other => panic!("a repair is answered {other:?}"),
        }
    }

    pub(crate) fn confirm(
        &mut self,
        lock_request: &Arc<LockRequest>,
        fence: u64,
    ) -> FenceConfirmation {
        let (lock_request, fence) = (lock_request.clone(), Fence::new(fence).unwrap());
        match self.ask(&Request::ConfirmFence {
            lock_request,
            fence,
        }) {
            Reply::Confirmed(confirmation) => confirmation,
            other => panic!("a confirmation is answered {other:?}"),
        }
    }

    pub(crate) fn heartbeat(&mut self, waiters: &[&Arc<LockRequest>]) -> Vec<Refusal> {
        let waiters = waiters.iter().map(|lock_request| Arc::clone(lock_request));
        match self.ask(&Request::Heartbeat(waiters.collect())) {
            Reply::Waiting(answers) => answers,
            other => panic!("a heartbeat is answered {other:?}"),
        }
    }

    /// Sends a request. Loads a script first if the server lacks it.
    pub(crate) fn ask(&mut self, request: &Request) -> Reply {
        for _ in 0..2 {
            let mut bytes = Vec::new();
            let count = self.codec.encode(request, &mut bytes).unwrap();
            assert_eq!(count, Codec::answers(request), "{request:?}");
            self.stream.get_mut().write_all(&bytes).unwrap();
            let answers: Vec<Value> = (0..count).map(|_| self.receive()).collect();
            match self.codec.decode(request, &answers) {
                Decoded::Reply(reply) => return reply,
                Decoded::NoScript(script) => {
                    let loaded = self.command(&["SCRIPT", "LOAD", script.text]);
                    assert_eq!(loaded.as_text(), Some(script.sha1()), "{}", script.name);
                }
            }
        }
        panic!("the server forgot a script at once");
    }

    /// Sends any command.
    pub(crate) fn command(&mut self, words: &[&str]) -> Value {
        let mut bytes = Vec::new();
        let mut writer = CommandWriter::new(&mut bytes);
        writer.command(words[0]);
        for word in &words[1..] {
            writer.arg(word);
        }
        writer.finish();
        self.stream.get_mut().write_all(&bytes).unwrap();
        if words[0] == "SUBSCRIBE" {
            return Value::Push(self.next_pushed());
        }
        self.receive()
    }

    /// Returns the notifications that came before the answer to this.
    pub(crate) fn notifications(&mut self) -> Vec<Notification> {
        self.command(&["PING"]);
        let pushed = self.pushed.drain(..);
        pushed
            .filter_map(|message| read_notification(&self.codec.prefix, &message))
            .collect()
    }

    /// Returns the waiters that were notified.
    pub(crate) fn notified(&mut self) -> Vec<Owner> {
        let notifications = self.notifications().into_iter();
        notifications
            .map(|notification| notification.waiter)
            .collect()
    }

    /// Returns what the lock key of `deploy` holds.
    pub(crate) fn value(&mut self) -> Option<String> {
        let value = self.command(&["GET", "deploy"]);
        value.as_text().map(str::to_owned)
    }

    fn receive(&mut self) -> Value {
        loop {
            match self.read() {
                Value::Push(message) => self.pushed.push_back(message),
                value => return value,
            }
        }
    }

    fn next_pushed(&mut self) -> Vec<Value> {
        match self.read() {
            Value::Push(message) => message,
            value => panic!("no message, but {value:?}"),
        }
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let (kind, rest) = line.trim_end().split_at(1);
        match kind {
            "+" => Value::Simple(rest.into()),
            "-" => {
                let (code, message) = rest.split_once(' ').unwrap_or((rest, ""));
                Value::error(code, message)
            }
            ":" => Value::Integer(rest.parse().unwrap()),
            "," => Value::Double(rest.parse().unwrap()),
            "_" => Value::Null,
            "$" => Value::Bytes(self.read_bytes(rest)),
            "*" => Value::Array(self.read_many(rest)),
            ">" => Value::Push(self.read_many(rest)),
            "%" => {
                let count: usize = rest.parse().unwrap();
                Value::Map((0..count).map(|_| (self.read(), self.read())).collect())
            }
            // The text follows its format and a colon.
            "=" => Value::Bytes(self.read_bytes(rest).split_off("txt:".len())),
            _ => panic!("not RESP3: {line:?}"),
        }
    }

    fn read_bytes(&mut self, count: &str) -> Vec<u8> {
        let mut bytes = vec![0; count.parse::<usize>().unwrap() + 2];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes.truncate(bytes.len() - 2);
        bytes
    }

    fn read_many(&mut self, count: &str) -> Vec<Value> {
        let count: usize = count.parse().unwrap();
        (0..count).map(|_| self.read()).collect()
    }
}

fn first_proposal(lock_request: &LockRequest) -> u64 {
    lock_request.owner.since().as_micros() + 1
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answered(pub(crate) Reply);

impl Answered {
    pub(crate) fn granted(self) -> (u64, Option<PermitSlot>) {
        match self.0 {
            Reply::Granted { fence, slot } => (fence.get(), slot),
            other => panic!("not granted, but {other:?}"),
        }
    }

    pub(crate) fn refused(self) -> Refusal {
        match self.0 {
            Reply::Busy(refusal) => refusal,
            other => panic!("not refused, but {other:?}"),
        }
    }

    pub(crate) fn failed(self) -> leasehold::Error {
        match self.0 {
            Reply::Failed(error) => error,
            other => panic!("no error, but {other:?}"),
        }
    }
}
