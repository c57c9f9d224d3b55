//! A lock that stays with its client: who is the next asks in one command with the release.

use leasehold::{Claim, Error, Turn};

use crate::connection::{Joining, Link, Replies, Writing};
use crate::queue::{alone, in_turn};
use crate::scripts::{ACQUIRE_IN_TURN, HAND_ON};
use crate::wire::Records;

/// Makes the attempt that `write` writes, to take the lock alone by the ticket of a wait. Where the last that
/// is about to go out is a release of that lock, both are done in one step, and half as much of the
/// server's time.
pub(crate) async fn run(
    link: &Link,
    records: &Records<'_>,
    claim: &Claim,
    turn: &Turn,
    write: impl Fn(&mut Writing<'_>) + Send + Sync,
) -> Result<Replies, Error> {
    let joining = Joining {
        front: &|out| alone(out, records),
        both: &|out| in_turn(out, &HAND_ON, records, claim, turn),
    };
    link.run_joining([&ACQUIRE_IN_TURN, &HAND_ON], write, &joining)
        .await
}
