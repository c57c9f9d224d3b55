use leasehold_fakeredis::Reply;

use crate::faults::{FaultKind, Faults};
use crate::history::{Wait, What};
use crate::plan::Plan;
use crate::state::agenda::Action;
use crate::state::client::SimClient;
use crate::state::program::{ProgramState, Purpose};
use crate::state::server::ServerState;
use crate::state::simulation::{Phase, Simulation};
use crate::time::{MILLIS, SECOND, Time};

impl Simulation {
    pub(crate) fn begin_phases(&mut self) {
        if self.plan.faults == Faults::NONE {
            self.add(What::Cleared);
            let calm = if self.plan.start > 0 {
                self.plan.start
            } else {
                self.plan.recovery()
            };
            self.agenda.add(calm, Action::Calm);
        }
        self.after(self.plan.start + self.plan.span);
    }

    fn after(&mut self, span: Time) {
        self.agenda.add(self.now + span, Action::Phase);
    }

    /// Ends the phase, or checks whether it can end.
    pub(crate) fn phase_due(&mut self) {
        match self.phase {
            Phase::Work => {
                self.clear_faults();
                self.is_live = !self.plan.has(FaultKind::Drift) && self.has_quorum();
                if self.plan.peace > 0 && self.is_live {
                    self.phase = Phase::Recovery;
                    if self.running_clients().is_empty() {
                        // Servers get their votes back from a client that observes them.
                        self.join();
                    }
                    self.after(self.plan.recovery());
                } else {
                    self.quiet();
                }
            }
            Phase::Recovery => {
                self.phase = Phase::Peace;
                if self.rng.faults.percent(50) {
                    self.stop_minority();
                    self.is_live = self.has_quorum();
                }
                if self.is_live {
                    self.add(What::Calm);
                }
                let kills = self.plan.has(FaultKind::Kill) || self.plan.has(FaultKind::PowerLoss);
                if kills && self.rng.faults.percent(70) {
                    let killed = self.plan.has(FaultKind::Kill);
                    self.lose_client(killed);
                }
                self.join();
                self.after(self.plan.peace);
            }
            Phase::Peace => self.quiet(),
            Phase::Quiet => self.look_for_end(),
            Phase::Settling => {
                self.add(What::Settled);
                self.log_servers();
                if self.seed.is_multiple_of(4) {
                    self.phase = Phase::Rest;
                    self.after(QUEUE_LIFE);
                } else {
                    self.phase = Phase::Over;
                }
            }
            Phase::Rest => {
                self.add(What::Rested);
                self.log_servers();
                self.phase = Phase::Over;
            }
            Phase::Over => {}
        }
    }

    /// Whether a majority of the servers is up and has its record of the quorum. Otherwise the quorum may
    /// need an operator.
    fn has_quorum(&mut self) -> bool {
        let mut records = 0;
        let up = self.servers.iter_mut();
        for server in up.filter(|server| server.state == ServerState::Up) {
            let clock = server.clock.wall_micros(self.now);
            let found = server.command(clock, &["EXISTS", "leasehold:member_record"]);
            records += usize::from(found == Reply::Integer(1));
        }
        records >= self.plan.majority()
    }

    fn stop_minority(&mut self) {
        let minority = self.plan.servers - self.plan.majority();
        for server in 0..minority {
            if self.rng.faults.percent(50) {
                self.stop_server(server);
            } else {
                self.pause_server(server);
            }
        }
    }

    fn quiet(&mut self) {
        self.add(What::Quiet);
        self.is_quiet = true;
        self.phase = Phase::Quiet;
        self.quiet_since = self.now;
        self.after(0);
    }

    /// Continues once all programs have ended.
    fn look_for_end(&mut self) {
        let is_done = self.clients.iter().all(SimClient::is_done);
        let allowed = match self.is_live {
            true => self.plan.recovery() + PROGRAMS_MAX,
            false => self.plan.recovery(),
        };
        let is_late = self.now > self.quiet_since + allowed;
        if !is_done && !is_late {
            return self.after(POLL_INTERVAL);
        }
        if !is_done && self.is_live {
            self.report_stuck();
        }
        self.phase = Phase::Settling;
        let until = self.servers.iter().flat_map(|server| {
            let locks = 0..self.plan.locks.len();
            locks.flat_map(|lock| server.log(lock).0)
        });
        let last = until.map(|lease| lease.until).max();
        let last = match self.plan.faults {
            Faults::NONE => self.now,
            _ => last
                .unwrap_or(self.now)
                .clamp(self.now, self.now + LEASE_MAX)
                .max(self.last_stray().map_or(0, |at| at + STRAY_MAX)),
        };
        self.after(last - self.now + SETTLED);
    }

    fn report_stuck(&mut self) {
        let mut stuck: Vec<Wait> = Vec::new();
        for client in self.clients.iter().filter(|client| !client.is_gone()) {
            stuck.extend(
                client
                    .programs
                    .iter()
                    .filter_map(|program| match program.state {
                        ProgramState::Waiting(wait, _) | ProgramState::Holding(wait) => Some(wait),
                        _ => None,
                    }),
            );
            stuck.extend(
                client
                    .operations
                    .values()
                    .filter_map(|purpose| match purpose {
                        Purpose::Release { wait, .. } => Some(*wait),
                        Purpose::Renew { waits, .. } => waits.first().copied(),
                        Purpose::Acquire { .. } | Purpose::Record(_) => None,
                    }),
            );
        }
        for wait in stuck {
            self.add(What::Stuck { wait });
        }
    }

    fn log_servers(&mut self) {
        for server in 0..self.servers.len() {
            if self.servers[server].state == ServerState::Up {
                self.log_server(server);
            }
        }
    }
}

/// By then all programs have had the lock and released it.
const PROGRAMS_MAX: Time = 15 * SECOND;
const POLL_INTERVAL: Time = 20 * MILLIS;

/// The last releases are in flight for this long.
const SETTLED: Time = 800 * MILLIS;

/// A lease that began before a clock was stepped back lasts this long.
const LEASE_MAX: Time = 6 * SECOND;

/// A request that arrives late takes a lease of at most this length.
const STRAY_MAX: Time = Plan::MAX_TTL + 300 * MILLIS;

/// A queue that is not used vanishes after 10 s.
const QUEUE_LIFE: Time = 11 * SECOND;
