//! What must hold: the design, and the design less what it can spare.

use super::{Variant, renewing, restart, skewed, sound, spread, whole, wrong};
use crate::bounds::{Bounds, Sets};
use crate::rules::{Repairing, Rules};
use crate::search::Event;

/// The design, which must hold, within bounds that a test can afford.
#[must_use]
pub fn design() -> Vec<Variant> {
    use Event::{Confirmed, FastPath, LateGrant, RejoinedGrant, RepairCounted, UntrustedGrant};
    let two = Bounds::attempts(2);
    let three = whole(Bounds::attempts(3));
    let sets = Sets::Five;
    let five = whole(Bounds { sets, ..two });
    vec![
        sound("design, 3 attempts", spread(three), &[FastPath, Confirmed]),
        sound(
            "design, 3 attempts, wrong clocks",
            wrong(three),
            &[FastPath, Confirmed],
        ),
        sound(
            "design, 2 attempts, wrong clocks",
            wrong(two),
            &[FastPath, LateGrant],
        ),
        sound(
            "design, 2 attempts, 2 renewals",
            renewing(two, 2),
            &[RepairCounted],
        ),
        sound(
            "design, 2 attempts, repeats",
            Bounds { repeats: 1, ..two },
            &[FastPath],
        ),
        sound(
            "design, 3 attempts, restart",
            restart(three, 1),
            &[UntrustedGrant, RejoinedGrant],
        ),
        sound(
            "design, 2 attempts, restart",
            restart(two, 1),
            &[UntrustedGrant, RejoinedGrant],
        ),
        sound(
            "design, 2 attempts, renewal, restart",
            renewing(restart(two, 1), 1),
            &[RejoinedGrant],
        ),
        sound(
            "design, 2 attempts, 2 members out",
            restart(two, 2),
            &[RejoinedGrant],
        ),
        sound(
            "design, 2 attempts, renewal, jump",
            renewing(Bounds { jumps: 1, ..two }, 1),
            &[UntrustedGrant],
        ),
        sound(
            "design, 2 attempts, skewed clocks, restart",
            skewed(restart(two, 1)),
            &[RejoinedGrant],
        ),
        sound("design, 5 members, 2 attempts", five, &[FastPath]),
    ]
}

/// The design within larger bounds, for a run of minutes.
#[must_use]
pub fn design_at_length() -> Vec<Variant> {
    let two = Bounds::attempts(2);
    let split = Bounds::attempts(3);
    let three = whole(split);
    let sets = Sets::Five;
    let five = whole(Bounds { sets, ..two });
    vec![
        sound("design", spread(restart(three, 1)), &[]),
        sound("design", skewed(restart(three, 1)), &[]),
        sound("design", split, &[]),
        sound(
            "design",
            renewing(restart(two, 1), 2),
            &[Event::RepairCounted],
        ),
        sound("design", renewing(restart(two, 2), 1), &[]),
        sound("design", renewing(Bounds { repeats: 1, ..two }, 1), &[]),
        sound("design", renewing(three, 1), &[]),
        sound("design", restart(five, 1), &[]),
    ]
}

/// Rules that break nothing if only one of them is left out: second lines of defence.
#[must_use]
pub fn spare() -> Vec<Variant> {
    let two = Bounds::attempts(2);
    let three = whole(Bounds::attempts(3));
    let renewing = renewing(restart(two, 1), 1);
    vec![
        harmless(
            "confirmation without owner check, asked where granted",
            spread(restart(three, 1)),
            |rules| rules.confirmation_checks_owner = false,
        ),
        harmless(
            "confirmation with owner check, asked of all",
            spread(three),
            |rules| rules.confirm_where_granted = false,
        ),
        harmless(
            "put-back counted in the round that made it, trusted",
            renewing,
            |rules| rules.repairing = Repairing::SameRound,
        ),
        harmless(
            "put-back on untrusted members, counted from the next round on",
            renewing,
            |rules| rules.trust.repair = false,
        ),
        harmless("no repair", renewing, |rules| {
            rules.repairing = Repairing::Never;
        }),
    ]
}

fn harmless(name: &'static str, bounds: Bounds, change: fn(&mut Rules)) -> Variant {
    let mut variant = sound(name, bounds, &[]);
    change(&mut variant.model.rules);
    variant
}
