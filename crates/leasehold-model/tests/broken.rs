//! Each rule that is left out shows in what it breaks. `--nocapture` prints the shortest traces.

use leasehold_model::properties::Property;
use leasehold_model::search::{Limits, Trace, search};
use leasehold_model::steps::Model;
use leasehold_model::variants::{Variant, broken};

/// A shortest trace that breaks the property.
fn shortest(model: &Model, property: Property) -> Option<Trace> {
    let limits = Limits {
        states: 10_000_000,
        until: Some(property),
    };
    search(model, limits).broken.remove(&property)
}

#[expect(clippy::print_stdout, reason = "the traces are for people")]
fn breaks(name: &str) {
    let Variant { model, breaks, .. } = find(name);
    let property = breaks.expect("a property to break");
    let trace = shortest(&model, property);
    let trace = trace.unwrap_or_else(|| panic!("{name} does not break {property}"));
    println!("{name}: {property} in {} steps: {trace}", trace.steps.len());
}

fn find(name: &str) -> Variant {
    let mut all = broken().into_iter();
    all.find(|variant| variant.name == name).expect(name)
}

macro_rules! breaking {
    ($($test:ident: $name:literal,)*) => {
        $(#[test]
        fn $test() {
            breaks($name);
        })*

        #[test]
        fn every_variant_has_a_test() {
            let tested = [$($name),*];
            for variant in broken() {
                assert!(tested.contains(&variant.name), "{} has none", variant.name);
            }
        }
    };
}

breaking! {
    no_confirmation_repeats_a_fence: "unconfirmed, same fence",
    no_confirmation_grants_a_smaller_fence: "unconfirmed, smaller fence",
    confirmation_without_owner_check: "confirmation without owner check, asked of all",
    floor_by_the_confirmation_alone: "floor only by confirmation",
    floor_by_the_confirmation_of_a_missing_counter: "floor by the confirmation of a missing counter",
    counter_step_in_the_next_incarnation:
        "counter step in the next incarnation, trusted as the lease was",
    wrong_clocks_and_a_lost_counter: "wrong clocks and a lost counter",
    counted_in_what_was_sent_before_the_wait_ended:
        "counted in what was sent before the wait ended",
    untrusted_at_grant: "untrusted member counted at grant",
    untrusted_at_confirmation: "untrusted member counted at confirmation",
    untrusted_at_renewal: "untrusted member counted at renewal",
    untrusted_at_renewal_without_repair: "untrusted member counted at renewal, no repair",
    untrusted_put_back_counted: "put-back counted in the round that made it, untrusted",
    no_waiting_time: "no waiting time",
    waiting_time_too_short: "waiting time too short",
    jumped_clock_trusted: "jumped clock trusted",
    validity_from_the_answer: "validity counted from the answer",
    margin_too_small: "margin smaller than the drift of both clocks",
    lost_is_not_final: "lost is not final",
    one_owner_over_several_attempts: "one owner over several attempts",
    release_of_a_foreign_lease: "somebody else's release",
    release_without_owner_check: "release without owner check",
    sets_that_overlap_in_one_member: "sets {1,2,3} and {3,4,5}",
    sets_of_different_length: "sets {1,2,3} and {1,2,3,4,5}",
}

/// Treating states as one changes no verdict and makes no trace longer.
#[test]
fn what_is_forgotten_makes_no_difference() {
    let names = [
        "untrusted member counted at grant",
        "no waiting time",
        "jumped clock trusted",
        "validity counted from the answer",
        "margin smaller than the drift of both clocks",
        "lost is not final",
    ];
    for name in names {
        let Variant { model, breaks, .. } = find(name);
        let property = breaks.expect("a property to break");
        let exact = Model {
            forgets: false,
            ..model
        };
        let lengths = [model, exact].map(|model| {
            let trace = shortest(&model, property);
            trace.expect(name).steps.len()
        });
        assert!(lengths[0] <= lengths[1], "{name}: {lengths:?}");
    }
}
