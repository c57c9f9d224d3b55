use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::faults::NetworkFault;
use leasehold_testkit::servers::until;

use crate::cluster::Cluster;
use crate::worker::TTL;

/// What a round breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The server is killed under a holder, and starts again.
    ServerRestarts,
    /// The server hangs for a second.
    ServerFreezes,
    /// The connections of a holder are reset, again and again.
    ConnectionsCut,
    /// The network of a holder loses everything, until the holder has lost the lock.
    HalfOpen,
    /// Answers to a holder take longer than a lease.
    SlowAnswers,
    /// A holder is stopped, and goes on when others have held the lock.
    HolderPauses,
    /// The server is killed for good, and its synchronous standby is promoted.
    StandbyPromoted,
}

impl Fault {
    pub(crate) const ALL: [Self; 7] = [
        Self::ServerRestarts,
        Self::ServerFreezes,
        Self::ConnectionsCut,
        Self::HalfOpen,
        Self::SlowAnswers,
        Self::HolderPauses,
        Self::StandbyPromoted,
    ];

    pub(crate) fn test_name(self) -> &'static str {
        match self {
            Self::ServerRestarts => "killed_server_forgets_no_grant",
            Self::ServerFreezes => "frozen_server_grants_nothing_twice",
            Self::ConnectionsCut => "cut_connections_lose_no_lock",
            Self::HalfOpen => "half_open_connections_end_a_guard_in_time",
            Self::SlowAnswers => "slow_answers_end_a_guard_in_time",
            Self::HolderPauses => "paused_holder_is_fenced_off",
            Self::StandbyPromoted => "promoted_synchronous_standby_knows_all_grants",
        }
    }

    /// Whether there is a standby, and whether it is synchronous. Each round then has a new cluster.
    pub(crate) fn standby(self) -> Option<bool> {
        (self == Self::StandbyPromoted).then_some(true)
    }

    /// Causes the fault once, and waits until the lock is granted again. Returns how long that took.
    pub(crate) fn strike(self, cluster: &mut Cluster) -> Duration {
        let hold = cluster.holder_that_stays(TTL / 2);
        match self {
            Self::ServerRestarts => cluster.server.restart(),
            Self::ServerFreezes => {
                cluster.server.freeze();
                pause(Duration::from_secs(1));
                cluster.server.thaw();
            }
            Self::ConnectionsCut => {
                for _ in 0..5 {
                    cluster.path_of(hold.worker).cut();
                    pause(Duration::from_millis(100));
                }
            }
            Self::HalfOpen => {
                self.spoil_until_others_hold(cluster, hold.worker, NetworkFault::HalfOpen);
            }
            Self::SlowAnswers => {
                let slow = NetworkFault::SlowAnswers(TTL * 3 / 2);
                self.spoil_until_others_hold(cluster, hold.worker, slow);
            }
            Self::HolderPauses => {
                cluster.workers[hold.worker].pause();
                let before = cluster.resource.grants();
                until("others hold the lock", || {
                    cluster.resource.grants() >= before + 3
                });
                cluster.workers[hold.worker].resume();
            }
            Self::StandbyPromoted => {
                cluster.server.kill();
                cluster.standby.as_ref().expect("a standby").promote();
            }
        }
        cluster.await_grants(3)
    }

    fn spoil_until_others_hold(self, cluster: &Cluster, worker: usize, fault: NetworkFault) {
        let path = cluster.path_of(worker);
        path.set(fault);
        let is_elsewhere = |other: usize| !std::ptr::eq(cluster.path_of(other), path);
        let before = cluster.resource.grants_to(is_elsewhere);
        until("others hold the lock", || {
            cluster.resource.grants_to(is_elsewhere) > before
        });
        path.set(NetworkFault::None);
    }
}

/// Promotes a standby that did not receive the last grant, while the holder is inside.
pub(crate) fn promote_a_standby_that_lags(cluster: &mut Cluster) {
    let standby = cluster.standby.as_ref().expect("a standby");
    cluster.replication.set(NetworkFault::HalfOpen);
    // The lease that the standby knows of ends, and others follow.
    pause(TTL);
    // Longer than a renewal takes, so that only its next one shows the loss.
    let hold = cluster.holder_that_stays(TTL);
    cluster.server.kill();
    standby.promote();
    let worker = hold.worker;
    let before = cluster.resource.grants_to(|other| other != worker);
    until("another holds the lock", || {
        cluster.resource.grants_to(|other| other != worker) > before
    });
    cluster.await_grants(3);
}

/// Waits while the fault lasts.
fn pause(span: Duration) {
    let end = SystemClock.now() + span;
    until("the fault has lasted", || SystemClock.now() >= end);
}
