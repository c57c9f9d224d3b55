//! Several servers under one id, searched step by step.
//!
//! Two members are the same for both clients. The third id leads each client to another server. One of the two may have
//! a record, and one that is gone may have had the id before. A client reaches one of the two members and its own third, which is a majority, so two
//! clients may reach disjoint majorities. Times are ages in ticks, as in the model of the locks.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

/// The members that both clients share.
const PEERS: usize = 2;

/// The clients, each with a server of its own under the third id.
const CLIENTS: usize = 2;

/// How long a guard lasts, and how long a server that joined has no vote.
const TTL: u8 = 1;
const WAIT: u8 = 2;

/// No search draws more admissions.
const ADMISSIONS_MAX: u8 = 3;

/// No member changes its epoch more often.
const EPOCHS_MAX: u8 = 2;

/// The rules about admissions that the model can leave out.
#[derive(Clone, Copy, Debug)]
pub struct IdentityRules {
    /// A server gets its record once all other members know it; otherwise at once.
    pub known_first: bool,
    /// Members never note an earlier admission again, and a client ignores a server if a member knows a later one.
    pub ordered: bool,
    /// A member that notes a later admission gets another epoch.
    pub epoch_changes: bool,
    /// So does one that knew no server of the id before.
    pub epoch_changes_at_first: bool,
    /// A server waits from its confirmed record on; otherwise from its first one.
    pub waits_from_confirmation: bool,
}

/// The rules of the design.
pub const IDENTITY_DESIGN: IdentityRules = IdentityRules {
    known_first: true,
    ordered: true,
    epoch_changes: true,
    epoch_changes_at_first: true,
    waits_from_confirmation: true,
};

/// What the lists of the two clients have under the third id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityStart {
    /// The member, and an empty server.
    EarlyList,
    /// Two empty servers. The member is gone.
    ReplacedTwice,
    /// As [`IdentityStart::EarlyList`], but a shared member lost its data and has not heard of the member since.
    ForgetfulPeer,
}

/// What one step does. The numbers are those of a client, and of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityStep {
    /// A client reads the record of a shared member.
    Look(usize, usize),
    /// It writes the first record of its third server.
    Admit(usize),
    /// It tells a shared member which server it has.
    Tell(usize, usize),
    /// It confirms the record of its third server.
    Confirm(usize),
    /// A shared member answers its request for the lock.
    Ask(usize, usize),
    /// Its third server answers, so it has the lock.
    Win(usize),
    /// Time passes.
    Tick,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Peer {
    seen: u8,
    epoch: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Server {
    /// Its admission; 0 without a record.
    admission: u8,
    is_confirmed: bool,
    /// Ticks of its wait.
    waited: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Client {
    known: [Option<Peer>; PEERS],
    /// The shared member that granted, and the ticks since.
    granted: Option<(usize, u8)>,
    is_valid: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    peers: [Peer; PEERS],
    servers: [Server; CLIENTS],
    clients: [Client; CLIENTS],
    drawn: u8,
}

impl State {
    fn first(start: IdentityStart) -> Self {
        let mut servers = [Server::default(); CLIENTS];
        if start != IdentityStart::ReplacedTwice {
            servers[0] = Server {
                admission: 1,
                is_confirmed: true,
                waited: WAIT,
            };
        }
        let mut peers = [Peer { seen: 1, epoch: 0 }; PEERS];
        if start == IdentityStart::ForgetfulPeer {
            peers[0].seen = 0;
        }
        Self {
            peers,
            servers,
            clients: [Client::default(); CLIENTS],
            drawn: 1,
        }
    }

    /// Returns the state after a step, if the step is possible.
    fn after(&self, rules: IdentityRules, step: IdentityStep) -> Option<Self> {
        let mut next = *self;
        match step {
            IdentityStep::Look(c, p) => next.clients[c].known[p] = Some(self.peers[p]),
            IdentityStep::Admit(c) => next.admit(rules, c)?,
            IdentityStep::Tell(c, p) => next.tell(rules, c, p)?,
            IdentityStep::Confirm(c) => next.confirm(rules, c)?,
            IdentityStep::Ask(c, p) => {
                let is_current = self.clients[c].known[p]?.epoch == self.peers[p].epoch;
                let is_free = self.clients[c].granted.is_none();
                (is_current && is_free).then_some(())?;
                next.clients[c].granted = Some((p, 0));
            }
            IdentityStep::Win(c) => {
                let (client, server) = (&self.clients[c], &self.servers[c]);
                let waited = server.is_confirmed && server.waited >= WAIT;
                let can = client.granted.is_some() && !client.is_valid && waited;
                (can && self.trusts(rules, c)).then_some(())?;
                next.clients[c].is_valid = true;
            }
            IdentityStep::Tick => next.tick(rules),
        }
        (next != *self).then_some(next)
    }

    /// Whether no member that the client knows has seen a later server.
    fn trusts(&self, rules: IdentityRules, c: usize) -> bool {
        let mut known = self.clients[c].known.iter().flatten();
        let own = self.servers[c].admission;
        known.all(|peer| peer.seen == own || rules.ordered && peer.seen < own)
    }

    /// Evidence for the record comes from both shared members.
    fn admit(&mut self, rules: IdentityRules, c: usize) -> Option<()> {
        let known = self.clients[c].known;
        let greatest = known[0]?.seen.max(known[1]?.seen);
        let is_empty = self.servers[c].admission == 0;
        (is_empty && self.drawn < ADMISSIONS_MAX).then_some(())?;
        // Two admissions of the same number differ by chance.
        self.drawn += 1;
        self.servers[c] = Server {
            admission: self.drawn.max(greatest + 1),
            is_confirmed: !rules.known_first,
            waited: 0,
        };
        Some(())
    }

    fn tell(&mut self, rules: IdentityRules, c: usize, p: usize) -> Option<()> {
        let (own, seen) = (self.servers[c].admission, self.peers[p].seen);
        let is_news = own != seen && (!rules.ordered || own > seen);
        let may_change = self.peers[p].epoch < EPOCHS_MAX;
        (own > 0 && is_news && may_change).then_some(())?;
        self.peers[p].seen = own;
        let changes = match seen {
            0 => rules.epoch_changes_at_first,
            _ => rules.epoch_changes,
        };
        self.peers[p].epoch += u8::from(changes);
        Some(())
    }

    fn confirm(&mut self, rules: IdentityRules, c: usize) -> Option<()> {
        let server = self.servers[c];
        let known = self.clients[c].known;
        let is_known = known
            .iter()
            .all(|it| it.is_some_and(|it| it.seen == server.admission));
        (server.admission > 0 && !server.is_confirmed && is_known).then_some(())?;
        self.servers[c].is_confirmed = true;
        if rules.waits_from_confirmation {
            self.servers[c].waited = 0;
        }
        Some(())
    }

    fn tick(&mut self, rules: IdentityRules) {
        for server in &mut self.servers {
            let waits = server.is_confirmed || !rules.waits_from_confirmation;
            if server.admission > 0 && waits {
                server.waited = (server.waited + 1).min(WAIT);
            }
        }
        for client in &mut self.clients {
            client.granted = client.granted.map(|(p, age)| (p, age + 1));
            if client.granted.is_some_and(|(_, age)| age > TTL) {
                (client.granted, client.is_valid) = (None, false);
            }
        }
    }

    /// Whether two clients have the lock by different members. At one member, the leases exclude each other.
    fn is_broken(&self) -> bool {
        let valid = self.clients.iter().filter(|client| client.is_valid);
        let mut by = valid.filter_map(|client| client.granted).map(|(p, _)| p);
        by.next()
            .is_some_and(|first| by.any(|other| other != first))
    }
}

fn steps() -> impl Iterator<Item = IdentityStep> {
    let each = (0..CLIENTS).flat_map(|c| {
        let with_peers = (0..PEERS).flat_map(move |p| {
            [
                IdentityStep::Look(c, p),
                IdentityStep::Tell(c, p),
                IdentityStep::Ask(c, p),
            ]
        });
        let alone = [
            IdentityStep::Admit(c),
            IdentityStep::Confirm(c),
            IdentityStep::Win(c),
        ];
        with_peers.chain(alone)
    });
    each.chain([IdentityStep::Tick])
}

/// The result of a search.
#[derive(Debug)]
pub struct IdentitySearch {
    /// How many states it visited.
    pub states: usize,
    /// A shortest way to two holders, if there is one.
    pub broken: Option<Vec<IdentityStep>>,
    /// Whether a server that joined later granted the lock.
    pub later_server_wins: bool,
}

/// Searches all states for two clients that hold the lock by disjoint majorities.
#[must_use]
pub fn search_identities(rules: IdentityRules, start: IdentityStart) -> IdentitySearch {
    let first = State::first(start);
    let mut came_from: HashMap<State, Option<(State, IdentityStep)>> = HashMap::new();
    came_from.insert(first, None);
    let mut queue = VecDeque::from([first]);
    let mut later_server_wins = false;
    while let Some(state) = queue.pop_front() {
        later_server_wins |= state.clients[1].is_valid;
        if state.is_broken() {
            let mut trace = Vec::new();
            let mut at = state;
            while let Some(Some((before, step))) = came_from.get(&at) {
                trace.push(*step);
                at = *before;
            }
            trace.reverse();
            return IdentitySearch {
                states: came_from.len(),
                broken: Some(trace),
                later_server_wins,
            };
        }
        for step in steps() {
            let Some(next) = state.after(rules, step) else {
                continue;
            };
            if let Entry::Vacant(new) = came_from.entry(next) {
                new.insert(Some((state, step)));
                queue.push_back(next);
            }
        }
    }
    IdentitySearch {
        states: came_from.len(),
        broken: None,
        later_server_wins,
    }
}
