//! Named criticisms of Redlock. Each scenario first shows that two holders who follow the algorithm as it
//! is usually written are inside at the same time. Then the same happens to this library's locks.

mod clock_jumps;
mod fixture;
mod grant_comes_late;
mod holder_pauses;
mod lists_differ;
mod member_restarts;
mod naive;

use libtest_mimic::Trial;

pub(crate) use holder_pauses::{VERB, main};

pub(crate) fn trials() -> impl Iterator<Item = Trial> {
    let scenarios: [(&str, fn()); 5] = [
        ("a_members_clock_jumps", clock_jumps::scenario),
        ("b_a_member_restarts_empty", member_restarts::scenario),
        ("c_the_holder_pauses", holder_pauses::scenario),
        ("d_a_grant_comes_late", grant_comes_late::scenario),
        ("e_member_lists_differ", lists_differ::scenario),
    ];
    scenarios.into_iter().map(|(name, scenario)| {
        Trial::test(format!("critiques::{name}"), move || {
            scenario();
            Ok(())
        })
    })
}
