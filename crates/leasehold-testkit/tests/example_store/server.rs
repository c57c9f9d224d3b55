//! The server of the example: locks with queues in memory, behind a socket. Each message is a line of fields.
//!
//! | request | answers |
//! |---|---|
//! | `try KEY OWNER TTL PROPOSAL CLIENT` | `granted FENCE`, or `busy OWNER` |
//! | `barge`, in the same form | takes a lock that is reserved, too |
//! | `wait`, in the same form | `granted FENCE`, or `queued OWNER PLACE` and later `turn`: the owner asks again |
//! | `renew KEY OWNER TTL`, `release KEY OWNER TTL` | `done BOOL`: whether the owner held the lock |
//! | `locks`, `waiters KEY` | `rows`, and four fields for each lock or waiter |
//! | `ping` | `done true` |

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use leasehold::store::{background, locked};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// A server that runs until its process ends.
#[derive(Clone, Debug)]
pub(crate) struct ExampleServer {
    pub(crate) address: SocketAddr,
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    locks: BTreeMap<String, Lock>,
    /// Owners that were released, and until when the server remembers them. Nothing late of theirs takes effect.
    ended: HashMap<String, BootInstant>,
}

#[derive(Debug, Default)]
struct Lock {
    fence: u64,
    holder: Option<Holder>,
    queue: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Holder {
    owner: String,
    client: String,
    end: BootInstant,
    /// Whose turn it is, until it asks again.
    reserved: Option<Waiter>,
}

#[derive(Clone, Debug)]
struct Waiter {
    owner: String,
    client: String,
    connection: Connection,
    request: String,
}

/// A connection, for the answers to it.
#[derive(Clone, Debug)]
struct Connection(UnboundedSender<String>);

/// How long a lock waits for the client whose turn it is.
const RESERVATION: Duration = Duration::from_secs(2);

impl ExampleServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a socket");
        let server = Self {
            address: listener.local_addr().expect("an address"),
            table: Arc::default(),
        };
        let (serving, sweeping) = (server.clone(), server.clone());
        let runtime = background::ThreadRuntime::new().expect("a runtime");
        let accepting = async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
            background::spawn(sweeping.end_leases());
            while let Ok((stream, _)) = listener.accept().await {
                background::spawn(serving.clone().serve(stream));
            }
        };
        background::thread("server", move || runtime.block_on(accepting)).expect("a thread");
        server
    }

    /// Loses everything about a lock.
    pub(crate) fn forget(&self, key: &str) {
        locked(&self.table).locks.remove(key);
    }

    async fn end_leases(self) {
        loop {
            let now = SystemClock.now();
            SystemClock
                .sleep_until(now + Duration::from_millis(5))
                .await;
            for lock in locked(&self.table).locks.values_mut() {
                lock.pass_on_if(|holder| holder.end <= now);
            }
        }
    }

    async fn serve(self, stream: TcpStream) {
        let (read, mut write) = stream.into_split();
        let (answers, mut outbox) = unbounded_channel::<String>();
        background::spawn(async move {
            while let Some(line) = outbox.recv().await {
                if write.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
            }
        });
        let (connection, mut lines) = (Connection(answers), BufReader::new(read).lines());
        while let Ok(Some(line)) = lines.next_line().await {
            self.carry_out(&line, &connection);
        }
        // A wait ends with its connection.
        locked(&self.table).leave(|waiter| waiter.connection.is(&connection));
    }

    fn carry_out(&self, line: &str, connection: &Connection) {
        let fields: Vec<&str> = line.split('\t').collect();
        let mut table = locked(&self.table);
        let answer = match fields[1..] {
            [
                how @ ("try" | "barge" | "wait"),
                key,
                owner,
                ttl,
                proposal,
                client,
            ] => {
                let waiter = Waiter {
                    owner: owner.to_owned(),
                    client: client.to_owned(),
                    connection: connection.clone(),
                    request: fields[0].to_owned(),
                };
                let (ttl, proposal) = (millis(ttl), proposal.parse().unwrap_or(0));
                table.acquire(how, key, waiter, ttl, proposal)
            }
            ["renew", key, owner, ttl] => format!("done\t{}", table.renew(key, owner, millis(ttl))),
            ["release", key, owner, ttl] => {
                format!("done\t{}", table.release(key, owner, millis(ttl)))
            }
            ["locks"] => table.rows(),
            ["waiters", key] => table.queue(key),
            ["ping"] => "done\ttrue".to_owned(),
            _ => format!("refused\tunknown request {:?}", &fields[1..]),
        };
        connection.send(fields[0], &answer);
    }
}

impl Table {
    fn acquire(
        &mut self,
        how: &str,
        key: &str,
        waiter: Waiter,
        ttl: Duration,
        proposal: u64,
    ) -> String {
        if self.ended.contains_key(&waiter.owner) {
            return "refused\tthe owner was released before".to_owned();
        }
        let lock = self.lock(key);
        let is_reserved = |it: &mut Holder| it.reserved.is_some() && it.owner != waiter.owner;
        if how == "barge"
            && let Some(overtaken) = lock.holder.take_if(is_reserved)
        {
            lock.queue.extend(overtaken.reserved);
            lock.queue.rotate_right(1);
        }
        let holder = lock.holder.as_ref().map(|it| it.owner.clone());
        match holder {
            Some(holder) if holder != waiter.owner && how == "wait" => {
                lock.queue.retain(|it| it.owner != waiter.owner);
                lock.queue.push_back(waiter);
                format!("queued\t{holder}\t{}", lock.queue.len())
            }
            Some(holder) if holder != waiter.owner => format!("busy\t{holder}"),
            _ => {
                lock.fence = lock.fence.max(proposal) + 1;
                lock.holder = Some(Holder {
                    owner: waiter.owner,
                    client: waiter.client,
                    end: SystemClock.now() + ttl,
                    reserved: None,
                });
                format!("granted\t{}", lock.fence)
            }
        }
    }

    fn lock(&mut self, key: &str) -> &mut Lock {
        self.locks.entry(key.to_owned()).or_default()
    }

    fn renew(&mut self, key: &str, owner: &str, ttl: Duration) -> bool {
        let holder = self.lock(key).holder.as_mut();
        let held = holder.filter(|holder| holder.owner == owner);
        held.map(|holder| holder.end = SystemClock.now() + ttl)
            .is_some()
    }

    fn release(&mut self, key: &str, owner: &str, ttl: Duration) -> bool {
        let now = SystemClock.now();
        self.ended.retain(|_, end| now < *end);
        self.ended.insert(owner.to_owned(), now + ttl);
        let lock = self.lock(key);
        lock.queue.retain(|waiter| waiter.owner != owner);
        lock.pass_on_if(|holder| holder.owner == owner)
    }

    /// Ends these waits, and passes on what is reserved for them.
    fn leave(&mut self, leaves: impl Fn(&Waiter) -> bool) {
        for lock in self.locks.values_mut() {
            lock.queue.retain(|waiter| !leaves(waiter));
            lock.pass_on_if(|holder| holder.reserved.as_ref().is_some_and(&leaves));
        }
    }

    /// Returns the held locks: key, owner, the rest of the lease in milliseconds, and client.
    fn rows(&mut self) -> String {
        let now = SystemClock.now();
        let mut rows = "rows".to_owned();
        for (key, lock) in &self.locks {
            let held = lock.holder.as_ref();
            if let Some(it) = held.filter(|it| it.reserved.is_none()) {
                let left = it.end.since(now).as_millis();
                rows += &format!("\t{key}\t{}\t{left}\t{}", it.owner, it.client);
            }
        }
        rows
    }

    /// Returns the waiters of a lock in order, in the same form.
    fn queue(&mut self, key: &str) -> String {
        let lock = self.lock(key);
        let next = lock.holder.as_ref().and_then(|it| it.reserved.as_ref());
        next.into_iter()
            .chain(&lock.queue)
            .fold("rows".to_owned(), |rows, it| {
                rows + &format!("\t{key}\t{}\t0\t{}", it.owner, it.client)
            })
    }
}

impl Lock {
    /// Frees the lock if this applies to its holder, and reserves it for the first waiter. Returns whether it did.
    fn pass_on_if(&mut self, applies: impl Fn(&Holder) -> bool) -> bool {
        if !self.holder.as_ref().is_some_and(applies) {
            return false;
        }
        self.holder = self.queue.pop_front().map(|next| {
            next.connection.send(&next.request, "turn");
            Holder {
                owner: next.owner.clone(),
                client: next.client.clone(),
                end: SystemClock.now() + RESERVATION,
                reserved: Some(next),
            }
        });
        true
    }
}

impl Connection {
    fn send(&self, request: &str, answer: &str) {
        // A client that is gone needs no answer.
        let _ = self.0.send(format!("{request}\t{answer}\n"));
    }

    fn is(&self, other: &Self) -> bool {
        self.0.same_channel(&other.0)
    }
}

fn millis(text: &str) -> Duration {
    Duration::from_millis(text.parse().unwrap_or(0))
}
