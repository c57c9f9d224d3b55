use crate::faults::FaultKind;
use crate::history::What;
use crate::state::agenda::{Action, Repair};
use crate::state::client::ClientState;
use crate::state::connection::Link;
use crate::state::server::ServerState;
use crate::state::simulation::Simulation;
use crate::time::{MILLIS, SECOND, Time};

impl Simulation {
    pub(crate) fn plan_fault(&mut self) {
        let mut occurs = self.plan.faults.iter();
        if occurs.any(|kind| !matches!(kind, FaultKind::Drift | FaultKind::WildClock)) {
            let pause = self.rng.faults.below(2 * self.plan.fault_pause);
            self.agenda
                .add(self.now.max(self.plan.start) + pause, Action::Fault);
        }
    }

    /// Causes a fault, and schedules the next one.
    pub(crate) fn inject_fault(&mut self) {
        if self.is_cleared {
            return;
        }
        let kinds: Vec<FaultKind> = self.plan.faults.iter().collect();
        let rng = self.rng.faults.clone();
        let kind = *rng.pick(&kinds);
        let server = rng.index(self.plan.servers);
        match kind {
            FaultKind::Drift | FaultKind::WildClock => {}
            FaultKind::Pause => {
                for server in self.victims(server) {
                    self.pause_server(server);
                    self.repair_after_span(Repair::ResumeServer(server));
                }
            }
            FaultKind::Restart | FaultKind::RestartEmpty => {
                let keeps_data = kind == FaultKind::Restart;
                for server in self.victims(server) {
                    if self.servers[server].state != ServerState::Up {
                        continue;
                    }
                    self.stop_server(server);
                    let repair = Repair::StartServer { server, keeps_data };
                    if rng.percent(70) {
                        let span = rng.below(300 * MILLIS);
                        self.agenda.add(self.now + span, Action::Repair(repair));
                    } else {
                        self.repair_after_span(repair);
                    }
                }
            }
            FaultKind::Flush => {
                for server in self.victims(server) {
                    self.flush_server(server);
                }
            }
            FaultKind::ClockStep => self.step_clock(),
            FaultKind::Partition => self.partition(server),
            FaultKind::Cut | FaultKind::HalfOpen | FaultKind::Slow => self.harm_connection(kind),
            FaultKind::LateBytes => self.delay_connections(),
            FaultKind::Kill => self.lose_client(true),
            FaultKind::PowerLoss => self.lose_client(false),
            FaultKind::Stop => self.pause_client(false),
            FaultKind::Freeze => self.pause_client(true),
        }
        self.plan_fault();
    }

    /// Clients with another list join while all servers answer, and the network splits at some time after that.
    pub(crate) fn plan_second_list(&mut self) {
        if self.plan.has_second_list {
            let start = self.plan.start;
            for client in 0..2 {
                let at = start + client * MILLIS;
                self.agenda.add(at, Action::Repair(Repair::Join));
            }
            let longest = *self.rng.faults.pick(&[10, 100, 4_000]);
            let split = start + self.rng.faults.below(longest * MILLIS);
            self.agenda.add(split, Action::Split);
        }
    }

    pub(crate) fn split_lists(&mut self) {
        self.note(|| "the network splits".to_owned());
        let until = self.plan.start + self.plan.span;
        for client in 0..self.clients.len() {
            let server = usize::from(client < self.plan.clients);
            let link = self.link(client, server);
            (link.to_server_blocked_until, link.to_client_blocked_until) = (until, until);
        }
    }

    /// Returns one server, or several for a fault that hits them at once, such as a power failure.
    fn victims(&self, one: usize) -> Vec<usize> {
        let several = self.rng.faults.percent(20);
        let all = 0..self.plan.servers;
        all.filter(|server| *server == one || several && self.rng.faults.percent(60))
            .collect()
    }

    /// Returns a span that is mostly short, and sometimes longer than a lease.
    fn span(&self) -> Time {
        let longest = *self.rng.faults.pick(&[150, 600, 1_200, 3_000]);
        self.rng.faults.between(5 * MILLIS, longest * MILLIS)
    }

    fn repair_after_span(&mut self, repair: Repair) {
        let at = self.now + self.span();
        self.agenda.add(at, Action::Repair(repair));
    }

    /// Steps the clock of one of a minority of servers. To a client, a step of a majority looks the same as
    /// a step of all the others.
    fn step_clock(&mut self) {
        let minority = (self.plan.servers - 1) / 2;
        if minority == 0 {
            return;
        }
        let server = self.rng.faults.index(minority);
        if self.servers[server].clock.offset().abs() > 50_000 {
            return;
        }
        let most = *self.rng.faults.pick(&[15_000, 300_000, 3_000_000]);
        let micros = self.rng.faults.around_zero(most);
        self.step_server(server, micros);
        // A client notices the step only if it asks before the clock is stepped back.
        let span = crate::plan::Plan::MAX_TTL + self.span();
        let repair = Action::Repair(Repair::StepBack(server));
        self.agenda.add(self.now + span, repair);
    }

    fn partition(&mut self, server: usize) {
        let clients = self.running_clients();
        if clients.is_empty() {
            return;
        }
        let rng = self.rng.faults.clone();
        let client = *rng.pick(&clients);
        let until = self.now + self.span();
        let (up, down) = *rng.pick(&[(true, true), (true, false), (false, true)]);
        let to_majority = rng.percent(20);
        self.note(|| {
            format!("client {client} is cut off from server {server}: {up} {down} until {until}")
        });
        for other in 0..self.plan.servers {
            if other == server || to_majority && rng.percent(60) {
                let link = self.link(client, other);
                if up {
                    link.to_server_blocked_until = until;
                }
                if down {
                    link.to_client_blocked_until = until;
                }
            }
        }
    }

    fn harm_connection(&mut self, kind: FaultKind) {
        let open = self.open_connections(None);
        if open.is_empty() {
            return;
        }
        let number = *self.rng.faults.pick(&open);
        let (client, server) = (
            self.connections[number].client,
            self.connections[number].server,
        );
        self.note(|| {
            format!(
                "{} of connection {number}: client {client}, server {server}",
                kind.name()
            )
        });
        match kind {
            FaultKind::Cut => self.cut(number),
            FaultKind::HalfOpen => self.kill_path(number),
            _ => {
                let extra = self.rng.faults.between(2 * MILLIS, 200 * MILLIS);
                self.slow_down(number, extra);
                self.repair_after_span(Repair::SpeedUp(number));
            }
        }
    }

    /// Delays a connection of a client, or all of them. The client gives up each of them before long.
    fn delay_connections(&mut self) {
        let open = self.open_connections(None);
        if open.is_empty() {
            return;
        }
        let rng = self.rng.faults.clone();
        let one = *rng.pick(&open);
        let client = self.connections[one].client;
        let are_all = rng.percent(50);
        let extra = rng.between(300 * MILLIS, 3 * SECOND);
        let given_up = self.now + rng.between(50 * MILLIS, 2_500 * MILLIS);
        self.note(|| format!("connection {one} of client {client} delays: all {are_all}"));
        for number in open {
            if number == one || are_all && self.connections[number].client == client {
                self.slow_down(number, extra);
                let repair = Repair::GiveUp(number);
                self.agenda.add(given_up, Action::Repair(repair));
            }
        }
    }

    /// Ends a client. Another one may start in its place.
    pub(crate) fn lose_client(&mut self, killed: bool) {
        let clients = self.running_clients();
        if clients.is_empty() || self.is_cleared && clients.len() < 2 {
            return;
        }
        let client = *self.rng.faults.pick(&clients);
        self.crash(client, killed);
        let others = clients.len() > 1;
        if !self.is_cleared && (!others || self.rng.faults.percent(60)) {
            self.repair_after_span(Repair::Join);
        }
    }

    pub(crate) fn crash(&mut self, client: usize, killed: bool) {
        self.add(What::Crashed { client, killed });
        self.clients[client].crash();
        for number in 0..self.connections.len() {
            if self.connections[number].client != client {
                continue;
            }
            if killed {
                self.close_at_client(number);
            } else if self.connections[number].is_open {
                self.connections[number].is_open = false;
                let noticed = self.rng.faults.between(3 * SECOND, 20 * SECOND);
                self.agenda
                    .add(self.now + noticed, Action::CloseAtServer(number));
            }
        }
    }

    fn pause_client(&mut self, frozen: bool) {
        let clients = self.running_clients();
        if clients.is_empty() {
            return;
        }
        let client = *self.rng.faults.pick(&clients);
        self.add(What::Paused { client, frozen });
        self.clients[client].state = ClientState::Stopped;
        if frozen {
            self.clients[client].clock.freeze(self.now);
        }
        self.repair_after_span(Repair::Wake(client));
    }

    pub(crate) fn repair(&mut self, repair: Repair) {
        match repair {
            Repair::ResumeServer(server) => self.resume_server(server),
            Repair::StartServer { server, keeps_data } => self.start_server(server, keeps_data),
            Repair::StepBack(server) => {
                let off = self.servers[server].clock.offset();
                if off.abs() > 5_000 {
                    self.step_server(server, -off);
                }
            }
            Repair::SpeedUp(number) => self.slow_down(number, 0),
            Repair::GiveUp(number) => self.give_up(number),
            Repair::Wake(client) => self.wake_client(client),
            Repair::Join if !self.is_cleared => self.join(),
            Repair::Join => {}
        }
    }

    /// Ends all faults.
    pub(crate) fn clear_faults(&mut self) {
        self.is_cleared = true;
        for server in 0..self.plan.servers {
            self.resume_server(server);
            let forgets = self.plan.has(FaultKind::RestartEmpty);
            self.start_server(server, !forgets);
            self.repair(Repair::StepBack(server));
        }
        let is_blocked = |link: &Link, now| {
            link.to_server_blocked_until > now || link.to_client_blocked_until > now
        };
        for number in self.open_connections(None) {
            self.slow_down(number, 0);
            let (client, server) = (
                self.connections[number].client,
                self.connections[number].server,
            );
            let now = self.now;
            if is_blocked(self.link(client, server), now) || self.is_dead(number) {
                self.break_connection(number, 0);
            }
        }
        self.links.clear();
        for client in 0..self.clients.len() {
            self.wake_client(client);
        }
        if self.plan.faults != crate::faults::Faults::NONE {
            self.add(What::Cleared);
        }
    }
}
