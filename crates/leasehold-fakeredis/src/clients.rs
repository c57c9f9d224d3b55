use std::collections::BTreeMap;

use crate::reply::Reply;

/// A connection to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub(crate) u64);

/// The commands between `MULTI` and `EXEC`.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) commands: Vec<Vec<Vec<u8>>>,
    /// A command was refused, so `EXEC` fails.
    pub(crate) is_broken: bool,
}

/// The server's side of a connection.
#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) is_resp3: bool,
    /// Replies and pushes that the client has not taken yet, in order.
    pub(crate) outgoing: Vec<Reply>,
    /// The beginning of a request that has not fully arrived.
    pub(crate) incoming: Vec<u8>,
    /// In the order of subscription.
    pub(crate) channels: Vec<Vec<u8>>,
    pub(crate) transaction: Option<Transaction>,
}

/// All connections and their subscriptions.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    last_id: u64,
    clients: BTreeMap<ConnectionId, Client>,
    subscribers: BTreeMap<Vec<u8>, Vec<ConnectionId>>,
}

impl Clients {
    pub(crate) fn connect(&mut self) -> ConnectionId {
        self.last_id += 1;
        let id = ConnectionId(self.last_id);
        self.clients.insert(id, Client::default());
        id
    }

    pub(crate) fn disconnect(&mut self, id: ConnectionId) {
        if let Some(client) = self.clients.remove(&id) {
            for channel in client.channels {
                self.forget_subscriber(id, &channel);
            }
        }
    }

    pub(crate) fn disconnect_all(&mut self) {
        self.clients.clear();
        self.subscribers.clear();
    }

    pub(crate) fn is_connected(&self, id: ConnectionId) -> bool {
        self.clients.contains_key(&id)
    }

    pub(crate) fn has_output(&self, id: ConnectionId) -> bool {
        let client = self.clients.get(&id);
        client.is_some_and(|client| !client.outgoing.is_empty())
    }

    pub(crate) fn of(&mut self, id: ConnectionId) -> &mut Client {
        self.clients.get_mut(&id).expect("the connection is open")
    }

    /// Subscribes a connection to a channel. Returns the number of its subscriptions after that.
    pub(crate) fn subscribe(&mut self, id: ConnectionId, channel: &[u8]) -> usize {
        let client = self.of(id);
        if !client.channels.iter().any(|other| other == channel) {
            client.channels.push(channel.to_vec());
            self.subscribers
                .entry(channel.to_vec())
                .or_default()
                .push(id);
        }
        self.of(id).channels.len()
    }

    /// Ends a subscription. Returns the number of the connection's subscriptions after that.
    pub(crate) fn unsubscribe(&mut self, id: ConnectionId, channel: &[u8]) -> usize {
        self.of(id).channels.retain(|other| other != channel);
        self.forget_subscriber(id, channel);
        self.of(id).channels.len()
    }

    fn forget_subscriber(&mut self, id: ConnectionId, channel: &[u8]) {
        if let Some(subscribers) = self.subscribers.get_mut(channel) {
            subscribers.retain(|other| *other != id);
            if subscribers.is_empty() {
                self.subscribers.remove(channel);
            }
        }
    }

    /// Sends a message to all subscribers of a channel. Returns their number.
    pub(crate) fn publish(&mut self, channel: &[u8], message: &[u8]) -> usize {
        let Some(subscribers) = self.subscribers.get(channel) else {
            return 0;
        };
        for id in subscribers {
            if let Some(client) = self.clients.get_mut(id) {
                let parts = [&b"message"[..], channel, message];
                client
                    .outgoing
                    .push(Reply::Push(parts.map(Reply::bulk).into()));
            }
        }
        subscribers.len()
    }
}
