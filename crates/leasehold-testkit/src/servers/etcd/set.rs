use std::io;
use std::ops::{Deref, DerefMut};

use crate::faults::Proxy;
use crate::servers::etcd::server::Ports;
use crate::servers::ports::retry_taken_ports;
use crate::servers::{EtcdBuilder, EtcdServer, until};

/// Real etcd servers that form one ensemble. The members reach each other by proxies.
#[derive(Debug)]
pub struct EtcdSet {
    members: Vec<EtcdServer>,
    peers: Vec<Proxy>,
}

impl EtcdBuilder {
    /// Starts one server and returns once it answers.
    ///
    /// # Panics
    ///
    /// If the server cannot be started. The message says what to install, or shows its output.
    pub fn start(self) -> EtcdServer {
        EtcdSet::start_with(1, self).into_only()
    }
}

impl EtcdSet {
    /// Starts `count` members with default settings.
    ///
    /// # Panics
    ///
    /// If a member cannot be started. The message says what to install, or shows its output.
    pub fn start(count: usize) -> Self {
        Self::start_with(count, EtcdBuilder::default())
    }

    /// Starts `count` members with these settings, and returns once all answer.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    pub fn start_with(count: usize, settings: EtcdBuilder) -> Self {
        let started = retry_taken_ports(|| Self::launch(count, &settings));
        started.unwrap_or_else(|error| panic!("{error}"))
    }

    fn launch(count: usize, settings: &EtcdBuilder) -> io::Result<Self> {
        let ports: Vec<Ports> = (0..count).map(|_| Ports::free()).collect();
        let peers: Vec<Proxy> = ports.iter().map(|ports| Proxy::to(ports.peer)).collect();
        let named =
            |(number, peer): (usize, &Proxy)| format!("m{number}=http://127.0.0.1:{}", peer.port());
        let cluster: Vec<String> = peers.iter().enumerate().map(named).collect();
        let cluster = cluster.join(",");
        let mut members = Vec::new();
        for (number, (ports, peer)) in ports.into_iter().zip(&peers).enumerate() {
            let name = format!("m{number}");
            let member = EtcdServer::launch(settings, &name, ports, peer.port(), &cluster);
            members.push(member?);
        }
        for member in &mut members {
            member.process.await_ready()?;
        }
        Ok(Self { members, peers })
    }

    /// Returns the number of the leader, once there is one.
    ///
    /// # Panics
    ///
    /// If the members elect none.
    pub fn leader(&self) -> usize {
        self.leader_but(usize::MAX)
    }

    /// Returns the number of the leader, once there is one other than the member number `former`. A stopped member
    /// must be `former`, as it does not answer.
    ///
    /// # Panics
    ///
    /// If the members elect none.
    pub fn leader_but(&self, former: usize) -> usize {
        let mut leader = None;
        until("the members have a leader", || {
            let members = self.members.iter().enumerate();
            let mut others = members.filter(|(number, _)| *number != former);
            leader = others.find(|(_, member)| member.is_leader());
            leader.is_some()
        });
        leader.map_or(former, |(number, _)| number)
    }

    /// Returns the network path from the other members to each member.
    pub fn peers(&self) -> &[Proxy] {
        &self.peers
    }

    fn into_only(mut self) -> EtcdServer {
        self.members.remove(0)
    }
}

impl Deref for EtcdSet {
    type Target = [EtcdServer];

    fn deref(&self) -> &Self::Target {
        &self.members
    }
}

impl DerefMut for EtcdSet {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.members
    }
}
