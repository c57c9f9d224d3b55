use std::rc::Rc;

use leasehold_quorum::{Position, Request};

use crate::history::{Execution, Kind, Lease, Wait, What};
use crate::state::connection::Upload;
use crate::state::server::ServerState;
use crate::state::simulation::Simulation;
use crate::time::MILLIS;

impl Simulation {
    /// Delivers to a server what a client sent.
    pub(crate) fn receive(&mut self, server: usize, number: usize, upload: Upload) {
        match self.servers[server].state {
            ServerState::Up => self.run_upload(server, number, upload),
            ServerState::Paused => self.servers[server].inbox.push_back((number, upload)),
            // The operating system refuses it.
            ServerState::Down => self.break_connection(number, 0),
        }
    }

    pub(crate) fn run_upload(&mut self, server: usize, number: usize, upload: Upload) {
        let clock = self.servers[server].clock.wall_micros(self.now);
        let redis = &mut self.servers[server].redis;
        let is_first = self.connections[number].redis.is_none();
        if is_first && self.connections[number].was_accepted {
            return;
        }
        let id = *self.connections[number]
            .redis
            .get_or_insert_with(|| redis.connect());
        self.connections[number].was_accepted = true;
        for (request, bytes) in upload.requests {
            let touched = request.as_deref().map(|request| self.touched(request));
            let before = touched.iter().flatten();
            let before: Vec<_> = before
                .map(|(_, lock, _)| self.last_observed(server, *lock))
                .collect();
            self.servers[server].redis.receive(clock, id, &bytes);
            let client = self.connections[number].client;
            if let Some(Request::Status) = request.as_deref() {
                self.add(What::Looked { server, client });
            }
            let Some(touched) = touched else { continue };
            let successor = request.as_deref().and_then(|it| self.successor(it));
            for ((kind, lock, wait), before) in touched.into_iter().zip(before) {
                let after = self.observe(server, lock);
                let connection = &self.connections[number];
                let execution = Execution {
                    server,
                    client: connection.client,
                    kind,
                    lock,
                    wait,
                    sent: upload.sent,
                    stray: !connection.is_open,
                    grants_own: successor == Some(wait),
                    before,
                    after,
                };
                self.stats.requests += 1;
                self.add(What::Executed(execution));
                self.log_queue(server, lock);
            }
        }
        self.collect_output(server);
    }

    /// Sends what the server has to send to its clients.
    pub(crate) fn collect_output(&mut self, server: usize) {
        for number in 0..self.connections.len() {
            let connection = &self.connections[number];
            if connection.server == server
                && let Some(id) = connection.redis
                && self.servers[server].redis.has_output(id)
            {
                let bytes = self.servers[server].redis.take_bytes(id);
                if !bytes.is_empty() {
                    self.send_down(number, bytes);
                }
            }
        }
    }

    /// The locks and waits that a request names.
    fn touched(&self, request: &Request) -> Vec<(Kind, usize, Wait)> {
        let one = |kind, lock_request: &leasehold::store::LockRequest| {
            let lock = self
                .locks
                .iter()
                .position(|keys| keys.key == lock_request.key);
            let wait = self.owners.wait(&lock_request.owner.to_ascii());
            lock.zip(wait).map(|(lock, wait)| (kind, lock, wait))
        };
        let found = match request {
            Request::TryAcquire { lock_request, .. } => vec![one(Kind::Try, lock_request)],
            Request::DrawFence { lock_request } => vec![one(Kind::DrawFence, lock_request)],
            Request::Acquire {
                lock_request,
                position,
                ..
            } => match position {
                Position::Ticket(_) => vec![one(Kind::Acquire, lock_request)],
                Position::None | Position::Barging => vec![one(Kind::Try, lock_request)],
            },
            Request::Free { lock_request } => vec![one(Kind::Release, lock_request)],
            Request::Release {
                lock_request,
                requeue,
                ..
            } => {
                let kind = requeue.map_or(Kind::Release, |_| Kind::Requeue);
                vec![one(kind, lock_request)]
            }
            Request::Dequeue { lock_request } => vec![one(Kind::Dequeue, lock_request)],
            Request::Renew(leases) => leases
                .iter()
                .map(|it| one(Kind::Renew, &it.lock_request))
                .collect(),
            Request::Repair(leases) => leases
                .iter()
                .map(|it| one(Kind::Repair, &it.lock_request))
                .collect(),
            Request::Heartbeat(lock_requests) => lock_requests
                .iter()
                .map(|it| one(Kind::Heartbeat, it))
                .collect(),
            Request::ConfirmFence { lock_request, .. } => {
                vec![one(Kind::ConfirmFence, lock_request)]
            }
            _ => Vec::new(),
        };
        found.into_iter().flatten().collect()
    }

    /// Returns the wait that a release names as its successor, unless it names the released owner itself.
    fn successor(&self, request: &Request) -> Option<Wait> {
        let Request::Release {
            lock_request,
            successor: Some(successor),
            ..
        } = request
        else {
            return None;
        };
        let owner = successor.lock_request.owner;
        let is_other = owner != lock_request.owner;
        is_other.then(|| self.owners.wait(&owner.to_ascii()))?
    }

    fn observe(&mut self, server: usize, lock: usize) -> Rc<[Lease]> {
        let leases = self.servers[server].leases(self.now, &self.locks[lock], &self.owners);
        self.servers[server].log[lock].leases = Rc::clone(&leases);
        leases
    }

    /// Returns the leases of the last look, without those that ended since. Servers count in milliseconds.
    fn last_observed(&self, server: usize, lock: usize) -> Rc<[Lease]> {
        let known = &self.servers[server].log[lock].leases;
        let stands = |lease: &Lease| lease.until + 2 * MILLIS > self.now;
        if known.iter().all(stands) {
            return Rc::clone(known);
        }
        known
            .iter()
            .filter(|lease| stands(lease))
            .copied()
            .collect()
    }

    fn log_queue(&mut self, server: usize, lock: usize) {
        let waits = self.servers[server].queue(self.now, &self.locks[lock], &self.owners);
        let known = &mut self.servers[server].log[lock].queue;
        if *known != waits {
            known.clone_from(&waits);
            self.add(What::Queue {
                server,
                lock,
                waits,
            });
        }
    }

    /// Logs what a server holds, after a change that no request caused.
    pub(crate) fn log_server(&mut self, server: usize) {
        for lock in 0..self.locks.len() {
            let leases = self.observe(server, lock);
            self.add(What::Holds {
                server,
                lock,
                leases,
            });
            self.log_queue(server, lock);
        }
    }
}
