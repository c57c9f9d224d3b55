use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use futures_util::FutureExt;
use leasehold::ambient::Ambient;
use leasehold::clock::Clock;
use leasehold::{Key, Member, MemorySnapshot, MemoryStore, Owner, Store};
use tokio::sync::oneshot;

use super::chance::Chance;
use super::connection::Connection;
use super::history::{Execution, History, Stand, What};
use super::machine::Machine;
use super::request::{Answer, Request};
use super::snapshots::Snapshots;
use super::timeline::Timeline;
use crate::virtual_time::lock;

/// A server of the world: a memory store on a machine of its own, which can freeze, crash and
/// forget. It writes down what happens to its leases.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) number: usize,
    pub(crate) machine: Machine,
    store: MemoryStore,
    timeline: Timeline,
    history: History,
    chance: Chance,
    keys: Vec<Key>,
    /// A new connection has the server drop the one before it.
    kills_old: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    condition: Condition,
    /// What the kernel keeps for a frozen server.
    inbox: Vec<Parcel>,
    connections: Vec<Weak<Connection>>,
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

/// A request on its way.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) client: usize,
    pub(crate) connection: Arc<Connection>,
    pub(crate) request: Request,
    pub(crate) reply: Option<oneshot::Sender<Answer>>,
    pub(crate) repeated: bool,
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
        Self {
            number,
            store,
            machine,
            timeline,
            history,
            chance,
            keys,
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

    /// Notes that a client is about to send an attempt.
    pub(crate) fn expect(&self, client: usize, request: &Request) {
        let Request::Acquire(claim) = request else {
            return;
        };
        if let Some(key) = self.keys.iter().position(|key| *key == claim.key) {
            let owner = claim.owner;
            self.history.add(What::Sent { client, key, owner });
        }
    }

    /// Takes in a request that has arrived.
    pub(crate) fn accept(&self, parcel: Parcel) {
        let condition = {
            let mut state = self.state();
            let known = |old: &Weak<Connection>| old.as_ptr() == Arc::as_ptr(&parcel.connection);
            if !state.connections.iter().any(known) {
                state.connections.retain(|old| old.strong_count() > 0);
                state.connections.push(Arc::downgrade(&parcel.connection));
            }
            state.condition
        };
        match condition {
            Condition::Up => self.execute(parcel),
            Condition::Frozen => self.state().inbox.push(parcel),
            Condition::Down { refuses: true } => parcel.connection.reset(),
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
            let any = &inbox[self.chance.below(inbox.len())].connection;
            let any = Arc::clone(any);
            let first = inbox
                .iter()
                .position(|parcel| Arc::ptr_eq(&parcel.connection, &any));
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
        let known = connections.iter().filter_map(Weak::upgrade);
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
        self.tell_holds();
    }

    pub(crate) fn flush(&self) {
        self.history.add(What::Restarted {
            server: self.number,
        });
        self.history.add(What::Forgot {
            server: self.number,
        });
        self.store.forget_everything();
        self.tell_holds();
    }

    /// Moves the wall clock, by which leases end.
    pub(crate) fn step(&self, micros: i64) {
        self.machine.step(micros);
        let server = self.number;
        self.history.add(What::Stepped { server, micros });
        self.tell_holds();
    }

    /// Whether it knows of a set.
    pub(crate) fn has_card(&self) -> bool {
        let presence = self.store.presence().now_or_never();
        presence.is_some_and(|presence| presence.is_ok_and(|presence| presence.card.is_some()))
    }

    /// What stands under each key.
    pub(crate) fn stands(&self) -> Vec<Option<Stand>> {
        self.keys.iter().map(|key| self.stand(key)).collect()
    }

    /// What it held one to three seconds ago.
    fn stale(&self) -> Option<MemorySnapshot> {
        let age = self.chance.millis(1_000, 3_000);
        let wanted = self.timeline.now().saturating_sub(age);
        self.state().snapshots.take_back_to(wanted)
    }

    fn tell_holds(&self) {
        for (key, stand) in self.stands().into_iter().enumerate() {
            let server = self.number;
            self.history.add(What::Holds { server, key, stand });
        }
    }

    fn execute(&self, parcel: Parcel) {
        let (client, connection) = (parcel.client, &parcel.connection);
        {
            let mut state = self.state();
            let dropped = state.dropped_below.entry(client).or_default();
            if connection.number() < *dropped {
                return;
            }
            if self.kills_old {
                *dropped = connection.number();
            }
        }
        let now = self.timeline.now();
        self.state().snapshots.take(now, &self.store);
        let stray = parcel.repeated || connection.is_broken();
        let mut executions = self.executions(&parcel, stray);
        let answer = parcel.request.execute(&self.store);
        for execution in &mut executions {
            execution.after = self.stand(&self.keys[execution.key]);
        }
        for execution in executions {
            self.history.add(What::Executed(execution));
        }
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
        if let Some(reply) = parcel.reply {
            // Nobody waits any more: the answer is lost.
            let _ = reply.send(answer);
        }
    }

    /// What is to be told of the request, before it is carried out.
    fn executions(&self, parcel: &Parcel, stray: bool) -> Vec<Execution> {
        let Some((kind, claims)) = parcel.request.claims() else {
            return Vec::new();
        };
        let execution = |(key, owner): (&Key, Owner)| {
            let number = self.keys.iter().position(|known| known == key)?;
            Some(Execution {
                server: self.number,
                client: parcel.client,
                kind,
                key: number,
                owner,
                stray,
                before: self.stand(key),
                after: None,
            })
        };
        claims.into_iter().filter_map(execution).collect()
    }

    fn stand(&self, key: &Key) -> Option<Stand> {
        let holders = self.store.holders(key).now_or_never();
        let holder = holders.and_then(Result::ok)?.into_iter().next()?;
        let end = self.machine.now() + holder.remaining?;
        Some(Stand {
            owner: holder.owner?,
            until: self.machine.on_timeline(end),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}
