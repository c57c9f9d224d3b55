//! A member gets a new disk under a committed result.

use std::convert::Infallible;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock, SystemClock};
use leasehold::{Client, Error, Fence};
use leasehold_testkit::servers::until;
use pollster::block_on;

use crate::cluster::{AFTER_FORGETTING, Cluster};
use crate::set::TTL;

/// Three members have a result, and two missed it. One of the three then loses its data. When the request
/// is made again the other two are down, so the members that answer do not know the result.
pub(crate) fn strike(cluster: &mut Cluster) {
    let [first, second, member, third, fourth] = cluster.some_members();
    let client = cluster.client();
    let request = format!("request-{}", SystemClock.now().as_nanos());
    let missed = kill(cluster, [first, second]);
    let fence = until_done(&client, &request);
    let since = SystemClock.now();
    cluster.servers[member].command(&["FLUSHALL"]);
    restart(cluster, [first, second], missed);
    cluster.out_since(member, since, AFTER_FORGETTING);
    cluster.await_whole();
    let out = kill(cluster, [third, fourth]);
    // The three have a vote on locks.
    cluster.await_grants(2);
    let again = once(&client, &request);
    assert!(again.is_err(), "it ran under {fence}, and now: {again:?}");
    restart(cluster, [third, fourth], out);
    assert_eq!(until_done(&client, &request), fence, "another result");
    cluster.await_whole();
}

/// Makes a request whose result is its fence.
fn once(client: &Client, request: &str) -> Result<Fence, Error> {
    let once = client.once(request).ttl(TTL).wait(TTL);
    let result = once.run(async |_| Ok::<_, Infallible>([]));
    block_on(result).map(|Ok(result)| result.fence)
}

fn until_done(client: &Client, request: &str) -> Fence {
    let mut done = None;
    until("the request is done", || {
        done = once(client, request).ok();
        done.is_some()
    });
    done.expect("a fence")
}

/// Kills these members, so that they never get what is sent to them in the meantime.
fn kill(cluster: &mut Cluster, members: [usize; 2]) -> BootInstant {
    let since = SystemClock.now();
    for member in members {
        cluster.servers[member].kill();
    }
    since
}

fn restart(cluster: &mut Cluster, members: [usize; 2], since: BootInstant) {
    for member in members {
        cluster.servers[member].restart();
        cluster.out_since(member, since, Duration::ZERO);
    }
}
