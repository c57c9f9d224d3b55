use leasehold_quorum::MemberIndex;

use crate::state::agenda::Action;
use crate::state::connection::{Connection, Link, Packet, Pipe, Requests, Upload};
use crate::state::simulation::Simulation;
use crate::time::{MILLIS, SECOND, Time};

impl Simulation {
    /// Returns how long a message takes.
    fn delay(&self) -> Time {
        let (least, most) = self.plan.delay;
        let usual = self.rng.network.between(least, most);
        let is_spike = self.plan.spikes > 0 && self.rng.network.below(1000) < self.plan.spikes;
        if is_spike {
            usual + self.rng.network.below(300 * MILLIS)
        } else {
            usual
        }
    }

    /// Returns when a message arrives on a path that is blocked until then.
    fn arrival(&self, blocked_until: Time, extra: Time) -> Time {
        let start = if blocked_until > self.now {
            blocked_until + self.rng.network.below(50 * MILLIS)
        } else {
            self.now
        };
        start + self.delay() + extra
    }

    pub(crate) fn link(&mut self, client: usize, server: usize) -> &mut Link {
        let width = self.servers.len();
        let index = client * width + server;
        if self.links.len() <= index {
            self.links.resize(index + width, Link::default());
        }
        &mut self.links[index]
    }

    /// Opens a connection. The server accepts it when its first packet arrives.
    pub(crate) fn open_connection(&mut self, client: usize, member: MemberIndex) -> usize {
        let server = self.clients[client].members[member];
        self.connections.push(Connection {
            client,
            member,
            server,
            redis: None,
            is_open: true,
            was_accepted: false,
            is_dead: false,
            extra: 0,
            to_server: Pipe::default(),
            to_client: Pipe::default(),
        });
        self.connections.len() - 1
    }

    pub(crate) fn upload(&mut self, number: usize, requests: Requests) {
        let sent = self.now;
        self.send_up(number, Packet::Data(Upload { sent, requests }));
    }

    fn send_up(&mut self, number: usize, packet: Packet) {
        let now = self.now;
        let (client, server) = (
            self.connections[number].client,
            self.connections[number].server,
        );
        let link = *self.link(client, server);
        let connection = &self.connections[number];
        let at = if connection.is_dead {
            Time::MAX
        } else {
            self.arrival(link.to_server_blocked_until, connection.extra)
        };
        let at = self.connections[number].to_server.push(now, at, packet);
        self.agenda.add(at, Action::ToServer(number));
        // The connection breaks if a message is not acknowledged in time.
        let answered = at.max(link.to_client_blocked_until);
        if answered > now + UNACKNOWLEDGED_MAX {
            self.agenda
                .add(now + UNACKNOWLEDGED_MAX, Action::CheckConnection(number));
        }
    }

    /// Sends what a server has to send on a connection.
    pub(crate) fn send_down(&mut self, number: usize, bytes: Vec<u8>) {
        let now = self.now;
        let (client, server) = (
            self.connections[number].client,
            self.connections[number].server,
        );
        let link = *self.link(client, server);
        let connection = &self.connections[number];
        if connection.is_dead || !connection.is_open {
            return;
        }
        let at = self.arrival(link.to_client_blocked_until, connection.extra);
        let at = self.connections[number].to_client.push(now, at, bytes);
        self.agenda.add(at, Action::ToClient(number));
    }

    pub(crate) fn arrive_at_server(&mut self, number: usize) {
        let now = self.now;
        if let Some(packet) = self.connections[number].to_server.pop(now) {
            let server = self.connections[number].server;
            match packet {
                Packet::Data(upload) => self.receive(server, number, upload),
                Packet::Close => self.close_at_server(number),
            }
        }
    }

    pub(crate) fn arrive_at_client(&mut self, number: usize) {
        let now = self.now;
        if let Some(bytes) = self.connections[number].to_client.pop(now)
            && self.connections[number].is_open
        {
            let client = self.connections[number].client;
            self.clients[client].inbox.push_back((number, bytes));
            self.process_inbox(client);
        }
    }

    /// Breaks a connection if what was sent is not acknowledged for too long.
    pub(crate) fn check_connection(&mut self, number: usize) {
        let now = self.now;
        let (client, server) = (
            self.connections[number].client,
            self.connections[number].server,
        );
        let is_blocked = self.link(client, server).to_client_blocked_until > now;
        let connection = &self.connections[number];
        let oldest = connection.to_server.oldest();
        let is_late = oldest.is_some_and(|sent| sent + UNACKNOWLEDGED_MAX <= now);
        if connection.is_dead || is_late || is_blocked {
            self.break_connection(number, 0);
        }
    }

    /// Gives up a connection on which the server answered nothing.
    pub(crate) fn check_opening(&mut self, number: usize) {
        let connection = &self.connections[number];
        let session = &self.clients[connection.client].sessions[connection.member];
        if session.connection == Some(number) && !session.is_up() {
            self.break_connection(number, 0);
        }
    }

    /// Closes the connection at the client. The server learns of it when the close arrives.
    pub(crate) fn close_at_client(&mut self, number: usize) {
        if std::mem::take(&mut self.connections[number].is_open) {
            self.connections[number].to_client.packets.clear();
            self.send_up(number, Packet::Close);
        }
    }

    pub(crate) fn close_at_server(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        if let Some(redis) = connection.redis.take() {
            let server = connection.server;
            self.servers[server].redis.disconnect(redis);
        }
    }

    /// Breaks a connection. The client learns of it now, the server after `noticed`. Until then the server
    /// still runs what arrives.
    pub(crate) fn break_connection(&mut self, number: usize, noticed: Time) {
        let connection = &mut self.connections[number];
        if !std::mem::take(&mut connection.is_open) {
            return;
        }
        connection.to_client.packets.clear();
        if noticed == 0 {
            connection.to_server.packets.clear();
        }
        self.agenda
            .add(self.now + noticed, Action::CloseAtServer(number));
        let client = self.connections[number].client;
        self.clients[client].broken.push_back(number);
        self.process_inbox(client);
    }

    /// Breaks a connection. Some of what was sent still arrives, perhaps late.
    pub(crate) fn cut(&mut self, number: usize) {
        let rng = self.rng.faults.clone();
        let lateness = if rng.percent(50) {
            rng.below(800 * MILLIS)
        } else {
            0
        };
        let now = self.now;
        let pipe = &mut self.connections[number].to_server;
        let kept = rng.index(pipe.packets.len() + 1);
        pipe.packets.truncate(kept);
        let mut last = now;
        for (_, at, packet) in &mut pipe.packets {
            if let Packet::Data(upload) = packet
                && rng.percent(30)
            {
                let requests = &mut upload.requests;
                requests.truncate(rng.index(requests.len() + 1));
            }
            last = (*at).saturating_add(lateness);
            *at = last;
        }
        let arrivals: Vec<Time> = pipe.packets.iter().map(|(_, at, _)| *at).collect();
        for at in arrivals {
            self.agenda.add(at, Action::ToServer(number));
        }
        let noticed = last.saturating_sub(now).min(SECOND) + 1 + rng.below(2 * SECOND);
        self.break_connection(number, noticed);
    }

    /// Gives up a connection at its client. The server still runs all that was sent on it, when it arrives.
    pub(crate) fn give_up(&mut self, number: usize) {
        let packets = &self.connections[number].to_server.packets;
        let last = packets.back().map_or(self.now, |(_, at, _)| *at);
        let noticed = last.saturating_sub(self.now).min(10 * SECOND) + 1;
        self.break_connection(number, noticed);
    }

    /// Makes a connection half-open: it delivers nothing, and each end notices that by its own timeout.
    pub(crate) fn kill_path(&mut self, number: usize) {
        let noticed = self.rng.faults.between(500 * MILLIS, 8 * SECOND);
        let connection = &mut self.connections[number];
        connection.is_dead = true;
        connection.to_client.packets.clear();
        let lost = self.rng.faults.percent(50);
        if lost {
            connection.to_server.packets.clear();
        }
        self.agenda
            .add(self.now + KEEPALIVE, Action::CheckConnection(number));
        self.agenda
            .add(self.now + noticed, Action::CloseAtServer(number));
    }

    /// Returns when the last request arrives that was sent on a connection that its client gave up.
    pub(crate) fn last_stray(&self) -> Option<Time> {
        let given_up = self.connections.iter().filter(|it| !it.is_open);
        let packets = given_up.flat_map(|it| &it.to_server.packets);
        let data =
            packets.filter(|(_, at, packet)| matches!(packet, Packet::Data(_)) && *at < Time::MAX);
        data.map(|(_, at, _)| *at).max()
    }

    pub(crate) fn slow_down(&mut self, number: usize, extra: Time) {
        self.connections[number].extra = extra;
    }

    pub(crate) fn is_dead(&self, number: usize) -> bool {
        self.connections[number].is_dead
    }

    /// Returns the connections that clients use, to one server or to all.
    pub(crate) fn open_connections(&self, server: Option<usize>) -> Vec<usize> {
        let all = self.connections.iter().enumerate();
        let open = all.filter(|(_, it)| it.is_open && server.is_none_or(|no| it.server == no));
        open.map(|(number, _)| number).collect()
    }
}

/// A client gives up a connection if a message is not acknowledged for this long.
const UNACKNOWLEDGED_MAX: Time = 3 * SECOND;

/// After this long, a client notices a dead connection on which it sends nothing.
const KEEPALIVE: Time = 5 * SECOND;
