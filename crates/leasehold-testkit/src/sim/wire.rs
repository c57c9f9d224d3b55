use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use leasehold::background;
use leasehold::{Ear, Ears, Error, ErrorKind, Heard, Hint};
use tokio::sync::oneshot;

use super::chance::Chance;
use super::connection::Connection;
use super::faults::{FaultClass, Faults};
use super::machine::Machine;
use super::parcel::{Parcel, Reply, ReturnAddress};
use super::request::{Answer, Request};
use super::server::Server;
use super::timeline::Timeline;
use crate::virtual_time::lock;

/// The network between one client and one server.
///
/// It behaves as TCP does: a connection keeps the order of what is sent on it, and what is lost
/// costs the connection in the end. A request with a lease in it that was not answered costs it
/// too, as the client then aborts it; what was on its way may still be carried out.
#[derive(Debug)]
pub(crate) struct Wire {
    client: usize,
    machine: Machine,
    server: Arc<Server>,
    timeline: Timeline,
    chance: Chance,
    ears: Ears,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    faults: Faults,
    connection: Option<Arc<Connection>>,
    opened: u64,
    /// Nothing gets through before these instants, towards the server and back.
    cut_there: Duration,
    cut_back: Duration,
    /// How much longer each message takes.
    slow: Duration,
}

/// A request that was sent.
struct Sent {
    connection: Arc<Connection>,
    answer: oneshot::Receiver<Reply>,
}

/// Gives its connection up unless the answer came: as a client does that cannot know otherwise
/// whether the request still takes effect.
struct Unanswered(Option<Arc<Connection>>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(connection) = &self.0 {
            connection.use_it();
            connection.break_off();
        }
    }
}

impl Wire {
    pub(crate) fn new(
        client: usize,
        machine: Machine,
        server: Arc<Server>,
        timeline: Timeline,
        chance: Chance,
    ) -> Arc<Self> {
        Arc::new(Self {
            client,
            machine,
            server,
            timeline,
            chance,
            ears: Ears::default(),
            state: Mutex::new(State {
                faults: Faults::NONE,
                connection: None,
                opened: 0,
                cut_there: Duration::ZERO,
                cut_back: Duration::ZERO,
                slow: Duration::ZERO,
            }),
        })
    }

    pub(crate) fn client(&self) -> usize {
        self.client
    }

    pub(crate) fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// What may happen to messages from now on.
    pub(crate) fn suffer(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Lets nothing through for `span`, in one or both directions.
    pub(crate) fn cut(&self, span: Duration, there: bool, back: bool) {
        let until = self.timeline.now() + span;
        let mut state = self.state();
        if there {
            state.cut_there = until;
        }
        if back {
            state.cut_back = until;
        }
    }

    /// Sets everything right.
    pub(crate) fn heal(&self) {
        let mut state = self.state();
        state.faults = Faults::NONE;
        state.cut_there = Duration::ZERO;
        state.cut_back = Duration::ZERO;
        state.slow = Duration::ZERO;
    }

    /// Loses what is on its way, and the connection with it.
    pub(crate) fn lose_all(&self) {
        if let Some(connection) = &self.state().connection {
            connection.reset();
        }
    }

    pub(crate) fn slow_down(&self, by: Duration) {
        self.state().slow = by;
    }

    /// Asks the server.
    pub(crate) async fn ask(self: Arc<Self>, request: Request) -> Result<Answer, Error> {
        self.machine.awake().await;
        self.server.ledger.expect(self.client, &request);
        let puts_lease = request.puts_lease();
        let Sent { connection, answer } = self.send(request);
        let mut unanswered = Unanswered(puts_lease.then(|| Arc::clone(&connection)));
        let answered = tokio::select! {
            biased;
            answer = self.come_back(answer) => Some(answer),
            () = connection.broken() => None,
        };
        self.machine.awake().await;
        unanswered.0 = None;
        let error = Error::new(ErrorKind::Unreachable, "connection lost");
        match answered {
            Some(answer) => Ok(answer),
            None if connection.was_used() => Err(error.with_unknown_effect()),
            None => Err(error),
        }
    }

    async fn come_back(&self, reply: oneshot::Receiver<Reply>) -> Answer {
        let Ok(reply) = reply.await else {
            // It was lost: only the end of the connection tells.
            return std::future::pending().await;
        };
        self.timeline.sleep_until(reply.arrives).await;
        reply.answer
    }

    /// From now on `ear` hears what comes without being asked for.
    pub(crate) fn listen(&self, ear: Ear) {
        self.ears.add(ear);
    }

    /// Lets the server send a hint to the client.
    pub(crate) fn hint(self: &Arc<Self>, connection: &Arc<Connection>, hint: Hint) {
        let Some(arrives) = self.way_back(connection) else {
            return;
        };
        let (wire, connection) = (Arc::clone(self), Arc::clone(connection));
        background::spawn(async move {
            wire.timeline.sleep_until(arrives).await;
            wire.machine.awake().await;
            if !connection.is_broken() {
                wire.ears.tell(&Heard::Hint(hint));
            }
        });
    }

    /// When something arrives at the client that the server sends now; `None` if it never does.
    pub(crate) fn way_back(&self, connection: &Arc<Connection>) -> Option<Duration> {
        let latency = self.latency();
        let at = (self.timeline.now() + latency).max(self.state().cut_back);
        self.perhaps_lose(connection);
        (!connection.has_ended()).then(|| connection.next_reply(at))
    }

    /// Shuts the connection of a client that is gone: at once, as the system does for a process
    /// that was killed, or once the server has asked in vain whether somebody is still there.
    pub(crate) fn hang_up(self: &Arc<Self>, at_once: bool) {
        let Some(connection) = self.state().connection.clone() else {
            return;
        };
        if at_once {
            background::spawn(Arc::clone(self).close(connection));
        } else {
            let (timeline, until) = (self.timeline, self.unnoticed());
            background::spawn(async move {
                timeline.sleep_until(until).await;
                connection.close();
            });
        }
    }

    /// Tells both sides of the end of a connection.
    async fn watch(self: Arc<Self>, connection: Arc<Connection>) {
        connection.broken().await;
        background::spawn(Arc::clone(&self).close(connection));
        self.machine.awake().await;
        self.ears.tell(&Heard::Deaf);
    }

    /// Brings the client's end of the connection to the server, behind all that was sent on it.
    async fn close(self: Arc<Self>, connection: Arc<Connection>) {
        let latency = self.latency();
        let at = (self.timeline.now() + latency).max(self.state().cut_there);
        let at = if connection.has_ended() {
            self.unnoticed()
        } else {
            connection.next_request(at)
        };
        self.timeline.sleep_until(at).await;
        connection.close();
    }

    /// Until when a server may take a connection for good whose other end fell silent.
    fn unnoticed(&self) -> Duration {
        self.timeline.now() + self.chance.millis(1_000, 20_000)
    }

    fn send(self: &Arc<Self>, request: Request) -> Sent {
        let connection = self.connection();
        let (reply, answer) = oneshot::channel();
        let faults = self.state().faults;
        let latency = self.latency();
        let mut at = (self.timeline.now() + latency).max(self.state().cut_there);
        if faults.has(FaultClass::Delay) && self.chance.below(120) == 0 {
            at += self.chance.millis(100, 9_000);
        }
        self.perhaps_lose(&connection);
        let parcel = |reply, repeated| Parcel {
            from: ReturnAddress::new(self, &connection),
            request: request.clone(),
            reply,
            repeated,
        };
        if !connection.has_ended() {
            let at = connection.next_request(at);
            background::spawn(Arc::clone(self).carry(parcel(Some(reply), false), at));
        }
        if faults.has(FaultClass::Repeat) && self.chance.below(40) == 0 {
            connection.use_it();
            let far = *self.chance.pick(&[5, 300, 8_000]);
            let again = at + self.chance.millis(1, far);
            background::spawn(Arc::clone(self).carry(parcel(None, true), again));
        }
        Sent { connection, answer }
    }

    /// Brings a request to the server, also when nobody waits for its answer any more.
    async fn carry(self: Arc<Self>, parcel: Parcel, at: Duration) {
        self.timeline.sleep_until(at).await;
        if parcel.repeated && !self.state().faults.has(FaultClass::Repeat) {
            return;
        }
        let connection = Arc::clone(&parcel.from.connection);
        if connection.is_broken() && !parcel.repeated {
            let late = self.state().faults.has(FaultClass::Late) && self.chance.percent(50);
            if !late || connection.was_reset() {
                return;
            }
            let far = *self.chance.pick(&[5, 500, 8_000]);
            let late = self.timeline.now() + self.chance.millis(0, far);
            self.timeline.sleep_until(connection.next_stray(late)).await;
            if connection.was_reset() || !self.state().faults.has(FaultClass::Late) {
                return;
            }
        }
        if self.server.listens() {
            connection.use_it();
        }
        self.server.accept(parcel);
    }

    /// Loses, now and then, all that is sent on the connection from now on, until it breaks.
    fn perhaps_lose(&self, connection: &Arc<Connection>) {
        let loses = self.state().faults.has(FaultClass::Loss) && self.chance.below(150) == 0;
        if loses && connection.end() {
            connection.use_it();
            let (timeline, connection) = (self.timeline, Arc::clone(connection));
            let until = timeline.now() + self.chance.millis(100, 3_000);
            background::spawn(async move {
                timeline.sleep_until(until).await;
                connection.break_off();
            });
        }
    }

    fn connection(self: &Arc<Self>) -> Arc<Connection> {
        let now = self.timeline.now();
        let opens = now + self.latency() * 2;
        let mut state = self.state();
        if let Some(connection) = &state.connection
            && !connection.is_broken()
        {
            return Arc::clone(connection);
        }
        state.opened += 1;
        let opens = opens.max(state.cut_there).max(state.cut_back);
        let connection = Arc::new(Connection::new(state.opened, opens));
        state.connection = Some(Arc::clone(&connection));
        background::spawn(Arc::clone(self).watch(Arc::clone(&connection)));
        connection
    }

    fn latency(&self) -> Duration {
        let usual = self.chance.millis(1, 6);
        let state = self.state();
        let long = state.faults != Faults::NONE && self.chance.below(20) == 0;
        usual + self.chance.millis(0, if long { 40 } else { 0 }) + state.slow
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}
