use leasehold::Mode;
use leasehold_fakeredis::Reply;

use crate::history::{Asked, Manner, Wait, What};
use crate::state::agenda::Action;
use crate::state::server::ServerState;
use crate::state::simulation::Simulation;
use crate::time::{MILLIS, SECOND, Time};

impl Simulation {
    pub(crate) fn poller_due(&mut self, number: usize) {
        let rng = self.pollers[number].rng.clone();
        let pause = match self.pollers[number].held.take() {
            Some(wait) => {
                self.add(What::Ended { wait });
                self.at_servers(RELEASE, wait);
                rng.between(100 * MILLIS, 600 * MILLIS)
            }
            None if self.is_quiet => return,
            None => self.try_foreign(number),
        };
        self.agenda.add(self.now + pause, Action::Poller(number));
    }

    /// Asks all servers once. Returns the time until the next step.
    fn try_foreign(&mut self, number: usize) -> Time {
        let rng = self.pollers[number].rng.clone();
        let wait = self
            .owners
            .add(|wait| format!("foreign-{wait}").into_bytes());
        let (client, lock) = (FIRST_POLLER + number, 0);
        self.add(What::Asked(Asked {
            wait,
            client,
            lock,
            mode: Mode::Exclusive,
            ttl: TTL,
            delay: 0,
            manner: Manner::Foreign,
        }));
        if self.at_servers(ACQUIRE, wait) >= self.plan.majority() {
            let until = self.now + TTL * 9 / 10;
            self.add(What::Granted {
                wait,
                fence: 0,
                until,
            });
            self.stats.foreign_grants += 1;
            self.pollers[number].held = Some(wait);
            rng.between(MILLIS, 30 * MILLIS)
        } else {
            self.at_servers(RELEASE, wait);
            self.add(What::Cancelled { wait });
            rng.between(50 * MILLIS, 250 * MILLIS)
        }
    }

    /// Runs a script at all servers that answer. Returns how many of them succeeded.
    fn at_servers(&mut self, script: &str, wait: Wait) -> usize {
        let mut done = 0;
        let value = format!("foreign-{wait}");
        let ttl = (TTL / MILLIS).to_string();
        let name = self.locks[0].key.as_str().to_owned();
        for server in 0..self.servers.len() {
            if self.servers[server].state == ServerState::Up {
                let clock = self.servers[server].clock.wall_micros(self.now);
                let command = ["EVAL", script, "1", &name, &value, &ttl];
                let reply = self.servers[server].command(clock, &command);
                done += usize::from(reply == Reply::Integer(1));
                self.log_server(server);
            }
        }
        done
    }
}

/// `SET NX PX` as a script, so that both steps have the same form.
const ACQUIRE: &str = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0";
const RELEASE: &str =
    "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0";

const TTL: Time = SECOND;

/// The number of the first foreign client in the history.
pub(crate) const FIRST_POLLER: usize = 1000;
