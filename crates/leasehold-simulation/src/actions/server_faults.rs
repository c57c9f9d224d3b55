//! Server faults: pauses, restarts, lost data, and clocks that are set.

use crate::history::What;
use crate::state::server::ServerState;
use crate::state::simulation::Simulation;

impl Simulation {
    pub(crate) fn pause_server(&mut self, server: usize) {
        if self.servers[server].state == ServerState::Up {
            self.servers[server].state = ServerState::Paused;
            self.add(What::Available {
                server,
                is_up: false,
            });
        }
    }

    pub(crate) fn resume_server(&mut self, server: usize) {
        if self.servers[server].state == ServerState::Paused {
            self.servers[server].state = ServerState::Up;
            self.add(What::Available {
                server,
                is_up: true,
            });
            for (number, upload) in std::mem::take(&mut self.servers[server].inbox) {
                self.run_upload(server, number, upload);
            }
        }
    }

    /// Stops a server. Its clients see their connections break.
    pub(crate) fn stop_server(&mut self, server: usize) {
        self.servers[server].state = ServerState::Down;
        self.servers[server].inbox.clear();
        self.add(What::Available {
            server,
            is_up: false,
        });
        for connection in &mut self.connections {
            if connection.server == server {
                connection.redis = None;
                connection.was_accepted = true;
            }
        }
        for number in self.open_connections(Some(server)) {
            self.break_connection(number, 0);
        }
    }

    pub(crate) fn start_server(&mut self, server: usize, keeps_data: bool) {
        let clock = self.servers[server].clock.wall_micros(self.now);
        let it = &mut self.servers[server];
        if it.state != ServerState::Down {
            return;
        }
        it.redis.restart(clock, keeps_data);
        it.observer = it.redis.connect();
        if !self.plan.lazy_scripts {
            it.redis.copy_scripts(&self.scripts);
        }
        it.state = ServerState::Up;
        if !keeps_data {
            self.add(What::Forgot { server });
        }
        self.add(What::Restarted { server });
        self.add(What::Available {
            server,
            is_up: true,
        });
        self.log_server(server);
    }

    pub(crate) fn flush_server(&mut self, server: usize) {
        self.servers[server].redis.flush();
        self.add(What::Forgot { server });
        self.log_server(server);
    }

    pub(crate) fn step_server(&mut self, server: usize, micros: i64) {
        self.servers[server].clock.step(micros);
        self.add(What::Stepped { server, micros });
        self.log_server(server);
    }
}
