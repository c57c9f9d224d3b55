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
    /// A holder is stopped, and goes on when others have held the lock.
    HolderPauses,
    /// The server is killed for good, and its synchronous standby is promoted.
    StandbyPromoted,
}

impl Fault {
    pub(crate) const ALL: [Self; 3] = [
        Self::ServerRestarts,
        Self::HolderPauses,
        Self::StandbyPromoted,
    ];

    pub(crate) fn test_name(self) -> &'static str {
        match self {
            Self::ServerRestarts => "killed_server_forgets_no_grant",
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
