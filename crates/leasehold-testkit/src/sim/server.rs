use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use futures_util::FutureExt;
use leasehold::ambient::Ambient;
use leasehold::{Heard, Key, Member, MemorySnapshot, MemoryStore};

use super::chance::Chance;
use super::connection::Connection;
use super::hearing::Subscriptions;
use super::history::{History, What};
use super::ledger::Ledger;
use super::machine::Machine;
use super::parcel::Parcel;
use super::request::Request;
use super::snapshots::Snapshots;
use super::timeline::Timeline;
use crate::virtual_time::lock;

/// A server of the world: a memory store on a machine of its own, which can freeze, crash and
/// forget.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) number: usize,
    pub(crate) machine: Machine,
    pub(crate) ledger: Arc<Ledger>,
    store: MemoryStore,
    subscriptions: Arc<Subscriptions>,
    timeline: Timeline,
    history: History,
    chance: Chance,
    /// A new connection has the server drop the one before it.
    kills_old: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    condition: Condition,
    /// What the kernel keeps for a frozen server.
    inbox: Vec<Parcel>,
    connections: Vec<(usize, Weak<Connection>)>,
    /// By client: connections below this number were dropped.
    dropped_below: BTreeMap<usize, u64>,
    snapshots: Snapshots,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Up,
    Frozen,
    /// Nothing listens; the machine says so, unless it is gone too.
    Down {
        refuses: bool,
    },
}

/// How a server comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comeback {
    Complete,
    Stale,
    Empty,
}

impl Server {
    pub(crate) fn new(
        number: usize,
        machine: Machine,
        timeline: Timeline,
        history: History,
        chance: Chance,
        keys: Vec<Key>,
        kills_old: bool,
    ) -> Self {
        let ambient = Ambient {
            clock: Arc::new(machine.clone()),
            entropy: chance.entropy(),
        };
        let store = MemoryStore::member(format!("s{number}"), ambient);
        // A server has a past, which nobody knows.
        store.restart(true);
        let ledger = Ledger::new(
            number,
            store.clone(),
            machine.clone(),
            history.clone(),
            keys,
        );
        let (ledger, subscriptions) = (Arc::new(ledger), Arc::<Subscriptions>::default());
        let (telling, writing) = (Arc::clone(&subscriptions), Arc::clone(&ledger));
        store.listen(Box::new(move |heard| match heard {
            Heard::Hint(hint) => {
                let heard = telling.tell(&hint);
                writing.told(&hint, heard);
                heard
            }
            Heard::Deaf => false,
        }));
        Self {
            number,
            ledger,
            store,
            subscriptions,
            machine,
            timeline,
            history,
            chance,
            kills_old,
            state: Mutex::new(State {
                condition: Condition::Up,
                inbox: Vec::new(),
                connections: Vec::new(),
                dropped_below: BTreeMap::new(),
                snapshots: Snapshots::default(),
            }),
        }
    }

    pub(crate) fn store(&self) -> &MemoryStore {
        &self.store
    }

    pub(crate) fn condition(&self) -> Condition {
        self.state().condition
    }

    /// Whether something takes in what arrives, if only the kernel.
    pub(crate) fn listens(&self) -> bool {
        !matches!(self.state().condition, Condition::Down { .. })
    }

    /// Takes in a request that has arrived.
    pub(crate) fn accept(&self, parcel: Parcel) {
        let condition = {
            let mut state = self.state();
            let from = &parcel.from;
            let is_known = |(_, old): &(usize, Weak<Connection>)| {
                old.as_ptr() == Arc::as_ptr(&from.connection)
            };
            if !state.connections.iter().any(is_known) {
                state.connections.retain(|(_, old)| old.strong_count() > 0);
                let new = (from.client, Arc::downgrade(&from.connection));
                state.connections.push(new);
            }
            state.condition
        };
        match condition {
            Condition::Up => self.execute(parcel),
            Condition::Frozen => self.state().inbox.push(parcel),
            Condition::Down { refuses: true } => parcel.from.connection.reset(),
            Condition::Down { refuses: false } => {}
        }
    }

    pub(crate) fn freeze(&self) {
        let mut state = self.state();
        if state.condition == Condition::Up {
            state.condition = Condition::Frozen;
            drop(state);
            self.history.note(format!("server {} freezes", self.number));
        }
    }

    /// Carries out what was sent meanwhile: in order on each connection, in any order otherwise.
    pub(crate) fn thaw(&self) {
        let mut inbox = {
            let mut state = self.state();
            if state.condition != Condition::Frozen {
                return;
            }
            state.condition = Condition::Up;
            std::mem::take(&mut state.inbox)
        };
        self.history.note(format!("server {} thaws", self.number));
        while !inbox.is_empty() {
            let any = &inbox[self.chance.below(inbox.len())].from.connection;
            let any = Arc::clone(any);
            let first = inbox
                .iter()
                .position(|parcel| Arc::ptr_eq(&parcel.from.connection, &any));
            self.execute(inbox.remove(first.unwrap_or_default()));
        }
    }

    /// Ends the server's process; its machine too, unless it `refuses` new connections.
    pub(crate) fn crash(&self, refuses: bool) {
        {
            let mut state = self.state();
            state.condition = Condition::Down { refuses };
            state.inbox.clear();
        }
        self.history
            .note(format!("server {} goes down", self.number));
        if refuses {
            self.reset_connections();
        }
    }

    /// Breaks off all connections from the server's side.
    pub(crate) fn reset_connections(&self) {
        let connections = std::mem::take(&mut self.state().connections);
        let known = connections.iter().filter_map(|(_, known)| known.upgrade());
        known.for_each(|connection| connection.reset());
    }

    /// Starts the server again after a crash.
    pub(crate) fn come_back(&self, how: Comeback) {
        self.reset_connections();
        self.history.add(What::Restarted {
            server: self.number,
        });
        match how {
            Comeback::Complete => self.store.restart(true),
            Comeback::Empty => self.store.restart(false),
            Comeback::Stale => match self.stale() {
                Some(snapshot) => self.store.restart_from(&snapshot),
                None => self.store.restart(true),
            },
        }
        if how != Comeback::Complete {
            self.history.add(What::Forgot {
                server: self.number,
            });
        }
        self.state().condition = Condition::Up;
        self.ledger.tell_all();
    }

    pub(crate) fn flush(&self) {
        self.history.add(What::Restarted {
            server: self.number,
        });
        self.history.add(What::Forgot {
            server: self.number,
        });
        self.store.forget_everything();
        self.ledger.tell_all();
    }

    /// Moves the wall clock, by which leases end.
    pub(crate) fn step(&self, micros: i64) {
        self.machine.step(micros);
        let server = self.number;
        self.history.add(What::Stepped { server, micros });
        self.ledger.tell_all();
    }

    /// Whether it knows of a set.
    pub(crate) fn has_card(&self) -> bool {
        let presence = self.store.presence().now_or_never();
        presence.is_some_and(|presence| presence.is_ok_and(|presence| presence.card.is_some()))
    }

    /// What it held one to three seconds ago.
    fn stale(&self) -> Option<MemorySnapshot> {
        let age = self.chance.millis(1_000, 3_000);
        let wanted = self.timeline.now().saturating_sub(age);
        self.state().snapshots.take_back_to(wanted)
    }

    fn execute(&self, parcel: Parcel) {
        if !self.admits(&parcel) {
            return;
        }
        let now = self.timeline.now();
        self.state().snapshots.take(now, &self.store);
        let (client, from) = (parcel.from.client, &parcel.from);
        if let Request::AcquireInTurn(claim, _) = &parcel.request {
            self.subscriptions
                .add(claim.owner, &from.wire, &from.connection);
        }
        let executions = self.ledger.before(&parcel);
        let answer = parcel.request.execute(&self.store);
        self.ledger.after(&parcel.request, executions);
        if let Request::Presence = parcel.request {
            let server = self.number;
            self.history.add(What::Looked { server, client });
        }
        if let Some(text) = parcel.request.on_card() {
            let text = format!(
                "        server {} card: client {client} {text}",
                self.number
            );
            self.history.note(text);
        }
        parcel.answer(answer);
    }

    /// Whether the connection of a request is still good; if so, older ones of its client may not
    /// be any more.
    fn admits(&self, parcel: &Parcel) -> bool {
        let (client, number) = (parcel.from.client, parcel.from.connection.number());
        let mut state = self.state();
        let dropped = state.dropped_below.entry(client).or_default();
        if number < *dropped {
            return false;
        }
        if self.kills_old && number > *dropped {
            *dropped = number;
            let theirs = state.connections.iter().filter(|(who, _)| *who == client);
            let older = theirs.filter_map(|(_, connection)| connection.upgrade());
            older
                .filter(|connection| connection.number() < number)
                .for_each(|connection| connection.close());
        }
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}
