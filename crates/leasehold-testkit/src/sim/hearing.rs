use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use leasehold::{ClientId, Hint, Owner};

use super::connection::Connection;
use super::wire::Wire;
use crate::virtual_time::lock;

/// The connections along which a server tells waiters what concerns them: those on which their
/// clients ever asked in turn.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<BTreeMap<ClientId, Vec<Subscriber>>>);

#[derive(Debug)]
struct Subscriber {
    /// Wires know their server, so it must not keep them alive.
    wire: Weak<Wire>,
    connection: Arc<Connection>,
}

impl Subscriptions {
    pub(crate) fn add(&self, waiter: Owner, wire: &Weak<Wire>, connection: &Arc<Connection>) {
        let mut all = lock(&self.0);
        let of_client = all.entry(waiter.client()).or_default();
        of_client.retain(Subscriber::stands);
        let known = |known: &Subscriber| Arc::ptr_eq(&known.connection, connection);
        if !of_client.iter().any(known) {
            of_client.push(Subscriber {
                wire: Weak::clone(wire),
                connection: Arc::clone(connection),
            });
        }
    }

    /// Sends the hint on. Whether there was anybody to send it to, as far as the server knows.
    pub(crate) fn tell(&self, hint: &Hint) -> bool {
        let all = lock(&self.0);
        let of_client = all.get(&hint.waiter.client()).into_iter().flatten();
        let mut heard = false;
        for subscriber in of_client.filter(|subscriber| subscriber.stands()) {
            if let Some(wire) = subscriber.wire.upgrade() {
                heard = true;
                wire.hint(&subscriber.connection, hint.clone());
            }
        }
        heard
    }
}

impl Subscriber {
    fn stands(&self) -> bool {
        self.connection.stands_at_server()
    }
}
