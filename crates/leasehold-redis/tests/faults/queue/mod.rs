//! Waiters die, stop, or cannot be reached, and so do the servers that keep their queue. The lock passes
//! to the others, and no waiter is forgotten.

mod abandoned;
mod crowd;
mod cuts;
mod dead_hosts;
mod fixture;
mod half_reached;
mod head;
mod host;
mod members;

use std::time::Duration;

use libtest_mimic::Trial;

pub(crate) use host::{VERB, main};

const LOCK: &str = "deploy";
const QUEUE: &str = "leasehold:queue:{deploy}:deploy";

/// So long that no lease ends by itself during a test.
const TTL: Duration = Duration::from_secs(10);
const MAX_TTL: Duration = TTL;

/// A scenario. Its argument is the number of servers.
type Scenario = fn(usize);

pub(crate) fn trials() -> impl Iterator<Item = Trial> {
    let anywhere: [(&str, Scenario); 10] = [
        ("holder_is_killed", head::holder_is_killed),
        (
            "head_is_killed_while_it_waits",
            head::is_killed_while_it_waits,
        ),
        ("head_is_killed_in_its_turn", head::is_killed_in_its_turn),
        ("head_stands_still", head::stands_still),
        ("hosts_are_powered_off", dead_hosts::scenario),
        (
            "a_host_is_powered_off_with_the_holder",
            dead_hosts::with_the_holder,
        ),
        ("connections_are_cut_while_they_wait", cuts::while_they_wait),
        (
            "connections_are_cut_as_the_lock_goes_around",
            cuts::while_the_lock_goes_around,
        ),
        ("waits_are_abandoned", abandoned::waits),
        ("clients_are_abandoned", abandoned::client),
    ];
    let anywhere = anywhere.into_iter().flat_map(|(name, scenario)| {
        [1, 5].map(|members| trial(&format!("{name}_at_{members}"), move || scenario(members)))
    });
    anywhere.chain([
        trial(
            "waits_are_abandoned_while_a_member_stands_still",
            abandoned::waits_while_a_member_stands_still,
        ),
        trial("hosts_reach_too_few_members", half_reached::scenario),
        trial("members_fail", members::scenario),
        trial("crowd", crowd::scenario),
    ])
}

fn trial(name: &str, scenario: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(format!("queue::{name}"), move || {
        scenario();
        Ok(())
    })
}

/// Prints what a test measures, for people.
fn note(text: &str) {
    #[expect(clippy::print_stderr, reason = "beside the test's outcome")]
    {
        eprintln!("{text}");
    }
}

/// Waits for `span`.
fn pause(span: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a fault lasts is part of it"
    )]
    std::thread::sleep(span);
}
