use std::mem;

use crate::clients::ConnectionId;
use crate::core::{Core, Runner};
use crate::dispatch;
use crate::reply::Reply;
use crate::resp;

/// A Redis server in memory.
///
/// It has no clock and no sockets. Each call passes the server's time, and connections are numbers. The
/// same calls give the same replies in every run of the program.
///
/// ```
/// use leasehold_fakeredis::{FakeRedis, Reply};
///
/// let mut server = FakeRedis::new(1, 0);
/// let connection = server.connect();
/// let script = "return redis.call('SET', KEYS[1], ARGV[1], 'PX', 10)";
/// let reply = server.execute(0, connection, &["EVAL", script, "1", "lock", "me"]);
/// assert_eq!(reply, Reply::Simple("OK".into()));
/// assert_eq!(server.execute(11_000, connection, &["GET", "lock"]), Reply::Nil);
/// ```
#[derive(Debug)]
pub struct FakeRedis {
    core: Core,
}

impl FakeRedis {
    /// Starts an empty server. Servers with different numbers have different run ids.
    ///
    /// `now_us` is the time of the server in microseconds since the Unix epoch, here and elsewhere. It may
    /// go back. Keys then live longer, as on a real server.
    pub fn new(number: u64, now_us: u64) -> Self {
        let mut core = Core {
            runner: Runner(dispatch::run),
            ..Core::default()
        };
        core.identity.number = number;
        core.identity.started_us = now_us;
        core.set_now(now_us);
        Self { core }
    }

    /// Accepts a connection. It uses RESP2 until it sends `HELLO 3`.
    pub fn connect(&mut self) -> ConnectionId {
        self.core.clients.connect()
    }

    /// Ends a connection and its subscriptions. Until then it counts as a receiver of messages.
    pub fn disconnect(&mut self, connection: ConnectionId) {
        self.core.clients.disconnect(connection);
    }

    /// Returns whether a connection is open.
    pub fn is_connected(&self, connection: ConnectionId) -> bool {
        self.core.clients.is_connected(connection)
    }

    /// Runs a command, and returns its reply.
    ///
    /// Messages for the connection, including its own, stay until [`take_replies`](Self::take_replies);
    /// they come before the reply. If a command has several confirmations, as `SUBSCRIBE a b` does, all but
    /// the last stay there, too.
    ///
    /// # Panics
    ///
    /// If the connection is not open.
    pub fn execute(
        &mut self,
        now_us: u64,
        connection: ConnectionId,
        args: &[impl AsRef<[u8]>],
    ) -> Reply {
        let args: Vec<&[u8]> = args.iter().map(AsRef::as_ref).collect();
        self.run(now_us, connection, &args)
    }

    fn run(&mut self, now_us: u64, connection: ConnectionId, args: &[&[u8]]) -> Reply {
        assert!(self.is_connected(connection), "{connection:?} is not open");
        self.core.set_now(now_us);
        self.core.caller = connection;
        self.core.run(args).into()
    }

    /// Takes the messages for a connection that no earlier call took, and the replies to what it
    /// [sent](Self::receive), in order.
    pub fn take_replies(&mut self, connection: ConnectionId) -> Vec<Reply> {
        if !self.is_connected(connection) {
            return Vec::new();
        }
        mem::take(&mut self.core.clients.of(connection).outgoing)
    }

    /// Reads bytes that a client sent, and runs the commands in them. [`take_bytes`](Self::take_bytes)
    /// returns the replies. The beginning of a command waits for the rest.
    ///
    /// The server ends the connection if the bytes are not RESP. Inline commands are not RESP, either.
    pub fn receive(&mut self, now_us: u64, connection: ConnectionId, bytes: &[u8]) {
        if !self.is_connected(connection) {
            return;
        }
        let mut incoming = mem::take(&mut self.core.clients.of(connection).incoming);
        incoming.extend_from_slice(bytes);
        let mut start = 0;
        loop {
            match resp::request(&incoming, start) {
                Ok(Some(request)) => {
                    let words = request.words.into_iter().map(|word| &incoming[word]);
                    let words: Vec<&[u8]> = words.collect();
                    start = request.end;
                    if words.is_empty() {
                        continue;
                    }
                    let reply = self.run(now_us, connection, &words);
                    self.core.clients.of(connection).outgoing.push(reply);
                }
                Ok(None) => break,
                Err(resp::NotRequest) => return self.disconnect(connection),
            }
        }
        incoming.drain(..start);
        self.core.clients.of(connection).incoming = incoming;
    }

    /// Returns whether the server has something to send to a connection.
    pub fn has_output(&self, connection: ConnectionId) -> bool {
        self.core.clients.has_output(connection)
    }

    /// Takes what the server has to send to a connection: replies and messages, in order.
    pub fn take_bytes(&mut self, connection: ConnectionId) -> Vec<u8> {
        let replies = self.take_replies(connection);
        let mut bytes = Vec::new();
        if !replies.is_empty() {
            let is_resp3 = self.core.clients.of(connection).is_resp3;
            for reply in replies {
                resp::write(&mut bytes, reply, is_resp3);
            }
        }
        bytes
    }

    /// Restarts the server. It then has a new run id, no connections and no scripts. Its settings stay, and
    /// so do its keys if `keeps_data` is set.
    pub fn restart(&mut self, now_us: u64, keeps_data: bool) {
        self.core.clients.disconnect_all();
        self.core.scripts.clear();
        if !keeps_data {
            self.core.keyspace.clear();
        }
        self.core.identity.restarts += 1;
        self.core.identity.started_us = now_us;
        self.core.set_now(now_us);
    }

    /// Copies the scripts that another server stores.
    pub fn copy_scripts(&mut self, from: &Self) {
        self.core.scripts.clone_from(&from.core.scripts);
    }

    /// Removes all keys.
    pub fn flush(&mut self) {
        self.core.keyspace.clear();
    }

    /// Refuses a command from now on, as for a user without the right to run it.
    pub fn deny(&mut self, command: &str) {
        self.core.denied.insert(command.to_ascii_uppercase());
    }

    /// Allows a command again that was [denied](Self::deny).
    pub fn allow(&mut self, command: &str) {
        self.core.denied.remove(&command.to_ascii_uppercase());
    }

    /// Sets what `CONFIG GET` returns for a setting. Settings have no other effect.
    pub fn configure(&mut self, setting: &str, value: &str) {
        self.core.identity.set(setting, value);
    }

    /// Sets what `INFO` returns for a field, such as `role`.
    pub fn set_info(&mut self, field: &str, value: &str) {
        let info = &mut self.core.identity.info;
        info.insert(field.to_owned(), value.to_owned());
    }

    /// Returns the run id, which each restart changes.
    pub fn run_id(&self) -> String {
        self.core.identity.run_id()
    }
}

#[cfg(test)]
mod tests;
