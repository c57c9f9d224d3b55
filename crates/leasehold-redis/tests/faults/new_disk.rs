//! A member gets a new disk under a committed result.

use std::convert::Infallible;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock, SystemClock};
use leasehold::{Client, Error, Fence};
use leasehold_testkit::servers::until;
use pollster::block_on;

use crate::set::TTL;
use crate::world::{AFTER_FORGETTING, World};

/// Three members have a result, and two missed it. One of the three then loses its data. When the request
/// is made again the other two are down, so the members that answer do not know the result.
pub(crate) fn strike(world: &mut World) {
    let [first, second, member, third, fourth] = world.some_members();
    let client = world.client();
    let request = format!("request-{}", SystemClock.now().as_nanos());
    let missed = kill(world, [first, second]);
    let fence = until_done(&client, &request);
    let since = SystemClock.now();
    world.servers[member].command(&["FLUSHALL"]);
    restart(world, [first, second], missed);
    world.out_since(member, since, AFTER_FORGETTING);
    world.await_whole();
    let out = kill(world, [third, fourth]);
    // The three have a vote on locks.
    world.await_grants(2);
    let again = once(&client, &request);
    assert!(again.is_err(), "it ran under {fence}, and now: {again:?}");
    restart(world, [third, fourth], out);
    assert_eq!(until_done(&client, &request), fence, "another result");
    world.await_whole();
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
fn kill(world: &mut World, members: [usize; 2]) -> BootInstant {
    let since = SystemClock.now();
    for member in members {
        world.servers[member].kill();
    }
    since
}

fn restart(world: &mut World, members: [usize; 2], since: BootInstant) {
    for member in members {
        world.servers[member].restart();
        world.out_since(member, since, Duration::ZERO);
    }
}
