//! What must break: each rule left out.

use super::{Variant, renewing, restart, skewed, spread, whole, wrong};
use crate::bounds::{Bounds, Sets};
use crate::properties::Property;
use crate::rules::{DESIGN, Floor, Repairing, Rules};
use crate::steps::Model;

/// The rules left out one by one. Each must be found to break the property.
#[must_use]
pub fn broken() -> Vec<Variant> {
    let mut all = fences();
    all.extend(trust());
    all.extend(waiting());
    all.extend(time());
    all.extend(identity());
    all
}

/// What keeps fences in order.
fn fences() -> Vec<Variant> {
    let two = Bounds::attempts(2);
    let three = whole(Bounds::attempts(3));
    let repeats = 1;
    let again = whole(restart(Bounds { repeats, ..two }, 1));
    let order = Property::FenceOrder;
    let unique = Property::FenceUnique;
    vec![
        without("unconfirmed, same fence", spread(three), unique, |rules| {
            rules.confirmation = false;
        }),
        without("unconfirmed, smaller fence", wrong(three), order, |rules| {
            rules.confirmation = false;
        }),
        without(
            "confirmation without owner check, asked of all",
            spread(three),
            unique,
            |rules| {
                rules.confirm_where_granted = false;
                rules.confirmation_checks_owner = false;
            },
        ),
        without(
            "floor only by confirmation",
            restart(two, 1),
            unique,
            |rules| rules.floor = Floor::Confirmation,
        ),
        without(
            "floor by the confirmation of a missing counter",
            spread(again),
            order,
            |rules| rules.floor = Floor::ConfirmationOfMissing,
        ),
        without(
            "counter step in the next incarnation, trusted as the lease was",
            restart(two, 1),
            order,
            |rules| rules.trust.one_incarnation = false,
        ),
        without(
            "wrong clocks and a lost counter",
            restart(wrong(two), 1),
            order,
            |_| {},
        ),
        without(
            "counted in what was sent before the wait ended",
            skewed(restart(two, 1)),
            unique,
            |rules| rules.trust.sent_after_wait = false,
        ),
    ]
}

/// The answers of a member that may have forgotten leases which the client must not count.
fn trust() -> Vec<Variant> {
    let two = Bounds::attempts(2);
    let three = whole(Bounds::attempts(3));
    let exclusion = Property::Exclusion;
    let renewing = renewing(restart(two, 1), 1);
    vec![
        without(
            "untrusted member counted at grant",
            restart(two, 1),
            exclusion,
            |rules| rules.trust.grant = false,
        ),
        without(
            "untrusted member counted at confirmation",
            spread(restart(three, 1)),
            Property::FenceUnique,
            |rules| rules.trust.confirmation = false,
        ),
        without(
            "untrusted member counted at renewal",
            renewing,
            exclusion,
            |rules| rules.trust.renewal = false,
        ),
        without(
            "untrusted member counted at renewal, no repair",
            renewing,
            exclusion,
            |rules| {
                rules.trust.renewal = false;
                rules.repairing = Repairing::Never;
            },
        ),
        without(
            "put-back counted in the round that made it, untrusted",
            renewing,
            exclusion,
            |rules| {
                rules.trust.repair = false;
                rules.repairing = Repairing::SameRound;
            },
        ),
    ]
}

/// How long its answers do not count.
fn waiting() -> Vec<Variant> {
    let two = Bounds::attempts(2);
    let exclusion = Property::Exclusion;
    vec![
        without("no waiting time", restart(two, 1), exclusion, |rules| {
            rules.times.wait = 0;
        }),
        without(
            "waiting time too short",
            restart(two, 1),
            exclusion,
            |rules| rules.times.wait = 2,
        ),
        without(
            "jumped clock trusted",
            Bounds { jumps: 1, ..two },
            exclusion,
            |rules| rules.trust.stepped_clock = false,
        ),
    ]
}

/// What time is for.
fn time() -> Vec<Variant> {
    let two = Bounds::attempts(2);
    let exclusion = Property::Exclusion;
    vec![
        without(
            "validity counted from the answer",
            two,
            exclusion,
            |rules| rules.deadline_from_sending = false,
        ),
        without(
            "margin smaller than the drift of both clocks",
            two,
            exclusion,
            |rules| rules.times.margin = 1,
        ),
        without(
            "lost is not final",
            renewing(two, 1),
            Property::Finality,
            |rules| rules.lost_is_final = false,
        ),
    ]
}

/// The identity of owners.
fn identity() -> Vec<Variant> {
    let two = Bounds::attempts(2);
    let exclusion = Property::Exclusion;
    let clients = 2;
    let two_clients = whole(Bounds {
        clients,
        ..Bounds::attempts(3)
    });
    let sets = |sets| whole(Bounds { sets, ..two });
    vec![
        without(
            "one owner over several attempts",
            two_clients,
            exclusion,
            |rules| rules.owner_per_attempt = false,
        ),
        without(
            "somebody else's release",
            two,
            Property::OwnRelease,
            |rules| rules.release_checks_owner = false,
        ),
        without(
            "release without owner check",
            two_clients,
            exclusion,
            |rules| rules.release_checks_owner = false,
        ),
        without(
            "sets {1,2,3} and {3,4,5}",
            sets(Sets::Overlapping),
            exclusion,
            |_| {},
        ),
        without(
            "sets {1,2,3} and {1,2,3,4,5}",
            sets(Sets::Longer),
            exclusion,
            |_| {},
        ),
    ]
}

fn without(
    name: &'static str,
    bounds: Bounds,
    breaks: Property,
    change: fn(&mut Rules),
) -> Variant {
    let mut rules = DESIGN;
    change(&mut rules);
    Variant {
        name,
        model: Model {
            rules,
            bounds,
            forgets: true,
        },
        breaks: Some(breaks),
        shows: &[],
    }
}
