use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::{Zookeeper, until};

/// What happens to the ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The leader is killed, and comes back.
    KillLeader,
    /// The leader is stopped for longer than a session, and continues.
    FreezeLeader,
    /// A follower is stopped for longer than a session, and continues.
    FreezeFollower,
    /// A follower loses its leader, and goes on answering its clients.
    CutOffFollower,
    /// Clients and one server lose what they send each other.
    HalfOpen,
    /// Answers take most of the time that a client waits.
    SlowAnswers,
    /// All connections break at once.
    CutAll,
    /// All servers are killed, and come back.
    KillAll,
}

/// Longer than the sessions of the workers.
const LONG: Duration = Duration::from_millis(3_500);

impl Fault {
    pub(crate) const ALL: &[Self] = &[
        Self::KillLeader,
        Self::FreezeLeader,
        Self::FreezeFollower,
        Self::CutOffFollower,
        Self::HalfOpen,
        Self::SlowAnswers,
        Self::CutAll,
        Self::KillAll,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::KillLeader => "killed_leader",
            Self::FreezeLeader => "frozen_leader",
            Self::FreezeFollower => "frozen_follower",
            Self::CutOffFollower => "cut_off_follower",
            Self::HalfOpen => "half_open_connections",
            Self::SlowAnswers => "slow_answers",
            Self::CutAll => "cut_connections",
            Self::KillAll => "killed_ensemble",
        }
    }

    /// Causes the fault once, and waits until it is over.
    pub(crate) fn happen(self, servers: &mut Zookeeper, proxies: &[Proxy]) {
        let leader = servers.leader();
        let follower = (leader + 1) % 3;
        match self {
            Self::KillLeader => {
                servers.kill(leader);
                servers.leader();
                servers.restart(leader);
            }
            Self::FreezeLeader | Self::FreezeFollower => {
                let frozen = if self == Self::FreezeLeader {
                    leader
                } else {
                    follower
                };
                servers.freeze(frozen);
                pause(LONG);
                servers.thaw(frozen);
            }
            Self::CutOffFollower => cut_off(servers),
            Self::HalfOpen => {
                proxies[follower].set(NetworkFault::HalfOpen);
                pause(LONG);
                proxies[follower].set(NetworkFault::None);
                proxies[follower].cut();
            }
            Self::SlowAnswers => {
                set_all(
                    proxies,
                    NetworkFault::SlowAnswers(Duration::from_millis(400)),
                );
                pause(LONG);
                set_all(proxies, NetworkFault::None);
            }
            Self::CutAll => proxies.iter().for_each(Proxy::cut),
            Self::KillAll => {
                (0..3).for_each(|number| servers.kill(number));
                servers.restart_all();
            }
        }
    }
}

/// The last server has the links, so it must be a follower.
fn cut_off(servers: &mut Zookeeper) {
    const LAST: usize = 2;
    while servers.leader() == LAST {
        servers.restart(LAST);
    }
    servers
        .links()
        .iter()
        .for_each(|link| link.set(NetworkFault::HalfOpen));
    pause(LONG);
    servers
        .links()
        .iter()
        .for_each(|link| link.set(NetworkFault::None));
    servers.links().iter().for_each(Proxy::cut);
    until("the follower is back", || servers.mode(LAST).is_some());
}

fn set_all(proxies: &[Proxy], fault: NetworkFault) {
    proxies.iter().for_each(|proxy| proxy.set(fault));
}

fn pause(span: Duration) {
    let end = SystemClock.now() + span;
    until("the fault has lasted", || SystemClock.now() >= end);
}
