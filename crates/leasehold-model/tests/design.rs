//! The design holds in every state that it can reach within the bounds, and the events it is made for
//! happen in some of them.

use leasehold_model::bounds::{Bounds, Clocks};
use leasehold_model::properties::Property;
use leasehold_model::rules::DESIGN;
use leasehold_model::search::{Limits, search};
use leasehold_model::steps::Model;
use leasehold_model::variants::{Variant, design};

const EVERYTHING: Limits = Limits {
    states: 10_000_000,
    until: None,
};

fn holds(name: &str) {
    let variant = find(name);
    let report = search(&variant.model, EVERYTHING);
    if let Some((property, trace)) = report.broken.first_key_value() {
        panic!("{property} is broken: {trace}");
    }
    assert!(report.complete, "capped at {} states", report.states);
    for event in variant.shows {
        assert!(report.seen.contains(event), "{event:?} never happened");
    }
}

fn find(name: &str) -> Variant {
    let mut all = design().into_iter();
    all.find(|variant| variant.name == name).expect(name)
}

macro_rules! holding {
    ($($test:ident: $name:literal,)*) => {
        $(#[test]
        fn $test() {
            holds($name);
        })*

        #[test]
        fn every_variant_has_a_test() {
            let tested = [$($name),*];
            for variant in design() {
                assert!(tested.contains(&variant.name), "{} has none", variant.name);
            }
        }
    };
}

holding! {
    three_attempts: "design, 3 attempts",
    three_attempts_with_wrong_clocks: "design, 3 attempts, wrong clocks",
    two_attempts_with_wrong_clocks: "design, 2 attempts, wrong clocks",
    two_attempts_that_renew_and_repair: "design, 2 attempts, 2 renewals",
    two_attempts_with_requests_executed_twice: "design, 2 attempts, repeats",
    three_attempts_and_a_restart: "design, 3 attempts, restart",
    two_attempts_and_a_restart: "design, 2 attempts, restart",
    two_attempts_that_renew_and_a_restart: "design, 2 attempts, renewal, restart",
    two_attempts_and_two_members_out: "design, 2 attempts, 2 members out",
    two_attempts_that_renew_and_a_clock_that_jumps: "design, 2 attempts, renewal, jump",
    two_attempts_with_skewed_clocks_and_a_restart: "design, 2 attempts, skewed clocks, restart",
    two_attempts_on_five_members: "design, 5 members, 2 attempts",
}

/// Treating states as one hides no event.
#[test]
fn what_is_forgotten_makes_no_difference() {
    let [brief, exact] = [true, false].map(|forgets| {
        let model = Model {
            rules: DESIGN,
            bounds: Bounds::attempts(2),
            forgets,
        };
        search(&model, EVERYTHING)
    });
    assert!(brief.complete && exact.complete);
    assert!(brief.states < exact.states / 10, "{} states", brief.states);
    assert!(brief.broken.is_empty() && exact.broken.is_empty());
    assert_eq!(brief.seen, exact.seen);
}

/// The guarantees for fences end with a lost counter and wrong clocks; exclusion does not.
#[test]
fn wrong_clocks_cost_only_fence_order() {
    let model = Model {
        rules: DESIGN,
        bounds: Bounds {
            restarts: 1,
            clocks: Clocks::Wrong,
            ..Bounds::attempts(2)
        },
        forgets: true,
    };
    let report = search(&model, EVERYTHING);
    assert!(report.complete, "capped at {} states", report.states);
    let broken: Vec<Property> = report.broken.into_keys().collect();
    assert_eq!(broken, [Property::FenceOrder, Property::FenceUnique]);
}
