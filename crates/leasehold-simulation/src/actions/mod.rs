//! What happens in a run, as methods of [`Simulation`](crate::state::simulation::Simulation).

mod clients;
mod driver;
mod guards;
mod injector;
mod network;
mod phases;
mod poller;
mod programs;
mod records;
mod server_faults;
mod servers;

use std::sync::Arc;

use crate::history::What;
use crate::state::agenda::Action;
use crate::state::simulation::{Phase, Simulation};

/// A run with more actions than this does not end by itself.
const ACTIONS_MAX: u64 = 3_000_000;

impl Simulation {
    /// Runs the simulation to the end.
    pub(crate) fn run(&mut self) {
        let plan = Arc::clone(&self.plan);
        self.note(|| format!("{plan:?}"));
        for _ in 0..self.plan.clients {
            self.join();
        }
        for number in 0..self.pollers.len() {
            self.agenda.add(0, Action::Poller(number));
        }
        self.plan_fault();
        self.plan_second_list();
        self.begin_phases();
        let mut actions = 0;
        while self.phase != Phase::Over
            && let Some((at, action)) = self.agenda.next()
        {
            self.now = at;
            self.act(action);
            actions += 1;
            assert!(actions < ACTIONS_MAX, "seed {} does not end", self.seed);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::ToServer(number) => self.arrive_at_server(number),
            Action::ToClient(number) => self.arrive_at_client(number),
            Action::CheckConnection(number) => self.check_connection(number),
            Action::CheckOpening(number) => self.check_opening(number),
            Action::CloseAtServer(number) => self.close_at_server(number),
            Action::Connect { client, member } => self.connect(client, member),
            Action::Wake { client, token } => self.wake(client, token),
            Action::Flush { client } => self.flush(client),
            Action::Program {
                client,
                program,
                token,
            } => self.program_due(client, program, token),
            Action::Poller(number) => self.poller_due(number),
            Action::Fault => self.inject_fault(),
            Action::Split => self.split_lists(),
            Action::Repair(repair) => self.repair(repair),
            Action::Phase => self.phase_due(),
            Action::Calm => self.add(What::Calm),
        }
    }
}
