//! Several servers under one id: which of them is the member. A model of its own.
//!
//! Two members are the same for both clients. The third id leads each client to another server. One of the two may have
//! a record, and one that is gone may have had the id before. A client reaches one of the two members and its own third,
//! which is a majority, so two clients may reach disjoint majorities. Times are ages in ticks, as in the model of locks.

use stateright::{Checker, HasDiscoveries, Model, Property};

/// A rule about admissions that the model can leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// A server gets its record once all other members know it; otherwise at once.
    KnownFirst,
    /// Members never note an earlier admission again, and a client ignores a server if a member knows a later one.
    AdmissionsInOrder,
    /// A member that notes a later admission gets another epoch.
    EpochAfterNext,
    /// So does one that knew no server of the id before.
    EpochAfterFirst,
    /// A server waits from its confirmed record on; otherwise from its first one.
    WaitFromConfirmation,
}

/// How long a guard lasts, and how long a server that joined has no vote.
const TTL: u8 = 1;
const WAIT: u8 = 2;
/// No search draws more admissions.
const ADMISSIONS_MAX: u8 = 3;
/// No member changes its epoch more often.
const EPOCHS_MAX: u8 = 2;

#[derive(Debug)]
struct Identity {
    left_out: Option<Rule>,
}

/// What one step does. The numbers are those of a client, and of a shared member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A client reads the record of a shared member.
    Look(usize, usize),
    /// It tells a shared member which server it has.
    Tell(usize, usize),
    /// A shared member answers its request for the lock.
    Ask(usize, usize),
    /// It writes the first record of its third server.
    Admit(usize),
    /// It confirms the record of its third server.
    Confirm(usize),
    /// Its third server answers, so it has the lock.
    Win(usize),
    /// Time passes.
    Tick,
}

/// What everyone knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    members: [Member; 2],
    servers: [Server; 2],
    clients: [Client; 2],
    drawn: u8,
}

/// A shared member: the admission that it noted, and its epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Member {
    seen: u8,
    epoch: u8,
}

/// The third server of a client.
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
    known: [Option<Member>; 2],
    /// The shared member that granted, and the ticks since.
    granted: Option<(usize, u8)>,
    is_valid: bool,
}

impl State {
    /// Whether two clients have the lock by different members. At one member, the leases exclude each other.
    fn has_two_holders(&self) -> bool {
        let [one, other] = self.clients.map(|it| it.granted.filter(|_| it.is_valid));
        matches!((one, other), (Some((one, _)), Some((other, _))) if one != other)
    }
}

impl Model for Identity {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let empty = Server::default();
        let member = Server {
            admission: 1,
            is_confirmed: true,
            waited: WAIT,
        };
        // A list that came early; the same, and a member lost its data and has not heard of the server since; and two
        // empty servers, because the member is gone.
        let starts = [(1, member), (0, member), (1, empty)];
        let state = |(seen, first)| State {
            members: [seen, 1].map(|seen| Member { seen, epoch: 0 }),
            servers: [first, empty],
            clients: [Client::default(); 2],
            drawn: 1,
        };
        starts.map(state).to_vec()
    }

    fn actions(&self, _: &State, steps: &mut Vec<Step>) {
        for c in 0..2 {
            for m in 0..2 {
                steps.extend([Step::Look(c, m), Step::Tell(c, m), Step::Ask(c, m)]);
            }
            steps.extend([Step::Admit(c), Step::Confirm(c), Step::Win(c)]);
        }
        steps.push(Step::Tick);
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = *state;
        match step {
            Step::Look(c, m) => next.clients[c].known[m] = Some(state.members[m]),
            Step::Tell(c, m) => self.tell(&mut next, c, m)?,
            Step::Ask(c, m) => {
                let client = &mut next.clients[c];
                let is_current = client.known[m]?.epoch == state.members[m].epoch;
                (is_current && client.granted.is_none()).then_some(())?;
                client.granted = Some((m, 0));
            }
            Step::Admit(c) => self.admit(&mut next, c)?,
            Step::Confirm(c) => self.confirm(&mut next, c)?,
            Step::Win(c) => {
                let (client, server) = (&state.clients[c], &state.servers[c]);
                let has_waited = server.is_confirmed && server.waited >= WAIT;
                let is_granted = client.granted.is_some() && has_waited;
                (is_granted && self.trusts(client, server)).then_some(())?;
                next.clients[c].is_valid = true;
            }
            Step::Tick => self.tick(&mut next),
        }
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one holder", |_: &Self, state: &State| {
                !state.has_two_holders()
            }),
            Property::sometimes("a later server has a vote", |_: &Self, state: &State| {
                state.clients[1].is_valid
            }),
        ]
    }
}

impl Identity {
    fn has(&self, rule: Rule) -> bool {
        self.left_out != Some(rule)
    }

    /// Whether no member that the client knows has seen a later server.
    fn trusts(&self, client: &Client, server: &Server) -> bool {
        let is_earlier = |seen| self.has(Rule::AdmissionsInOrder) && seen < server.admission;
        let mut known = client.known.iter().flatten();
        known.all(|member| member.seen == server.admission || is_earlier(member.seen))
    }

    /// Evidence for the record comes from both shared members.
    fn admit(&self, state: &mut State, c: usize) -> Option<()> {
        let [one, other] = state.clients[c].known;
        let greatest = one?.seen.max(other?.seen);
        let is_empty = state.servers[c].admission == 0;
        (is_empty && state.drawn < ADMISSIONS_MAX).then_some(())?;
        // Two admissions of the same number differ by chance.
        state.drawn += 1;
        state.servers[c] = Server {
            admission: state.drawn.max(greatest + 1),
            is_confirmed: !self.has(Rule::KnownFirst),
            waited: 0,
        };
        Some(())
    }

    fn tell(&self, state: &mut State, c: usize, m: usize) -> Option<()> {
        let (own, member) = (state.servers[c].admission, &mut state.members[m]);
        let is_later = own > member.seen || !self.has(Rule::AdmissionsInOrder);
        let is_news = own > 0 && own != member.seen && is_later;
        (is_news && member.epoch < EPOCHS_MAX).then_some(())?;
        let rule = match member.seen {
            0 => Rule::EpochAfterFirst,
            _ => Rule::EpochAfterNext,
        };
        member.seen = own;
        member.epoch += u8::from(self.has(rule));
        Some(())
    }

    fn confirm(&self, state: &mut State, c: usize) -> Option<()> {
        let server = &mut state.servers[c];
        let mut known = state.clients[c].known.iter();
        let is_known = known.all(|it| it.is_some_and(|it| it.seen == server.admission));
        (server.admission > 0 && !server.is_confirmed && is_known).then_some(())?;
        server.is_confirmed = true;
        if self.has(Rule::WaitFromConfirmation) {
            server.waited = 0;
        }
        Some(())
    }

    fn tick(&self, state: &mut State) {
        for server in &mut state.servers {
            let waits = server.is_confirmed || !self.has(Rule::WaitFromConfirmation);
            if server.admission > 0 && waits {
                server.waited = WAIT.min(server.waited + 1);
            }
        }
        for client in &mut state.clients {
            client.granted = client.granted.map(|(member, age)| (member, age + 1));
            if client.granted.is_some_and(|(_, age)| age > TTL) {
                (client.granted, client.is_valid) = (None, false);
            }
        }
    }
}

fn search(left_out: Option<Rule>) -> impl Checker<Identity> {
    let checker = Identity { left_out }.checker();
    checker
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join()
}

#[test]
fn one_id_has_one_server() {
    let found = search(None);
    found.assert_properties();
    assert_eq!(found.unique_state_count(), 45_738);
}

#[test]
fn each_rule_of_admissions_is_needed() {
    for rule in [
        Rule::KnownFirst,
        Rule::AdmissionsInOrder,
        Rule::EpochAfterNext,
        Rule::EpochAfterFirst,
        Rule::WaitFromConfirmation,
    ] {
        let history = search(Some(rule)).assert_any_discovery("one holder");
        println!("without {rule:?}: {history}");
    }
}
