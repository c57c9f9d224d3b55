//! Turns the checks of a suite into tests.

use std::sync::{Arc, OnceLock};

use libtest_mimic::{Failed, Trial};

use super::checks::{CHECKS, Check, Needs};
use super::fixture::Fixture;
use crate::faults::Proxy;
use crate::harness::{Harness, Suite};
use crate::programs;

/// A suite whose store starts with its first test.
#[derive(Debug)]
pub(super) struct Started {
    suite: Suite,
    harness: OnceLock<Arc<dyn Harness>>,
}

impl Started {
    pub(super) fn new(suite: Suite) -> Self {
        Self {
            suite,
            harness: OnceLock::new(),
        }
    }

    pub(super) fn has_contract(&self) -> bool {
        !self.suite.only_programs
    }
}

/// Returns one test for each check of the suite. Checks that need an absent trait, or a network that no proxy can break, are
/// ignored.
pub(super) fn trials(started: &Arc<Started>) -> impl Iterator<Item = Trial> {
    let started = Arc::clone(started);
    let suite = started.suite;
    let asked = move |check: &&Check| match check.needs {
        Needs::Nothing | Needs::Counts => true,
        // `s2` checks that the suite tells the truth.
        Needs::Processes => suite.open_at.is_some(),
        Needs::Login => suite.start_login.is_some(),
        Needs::Network => suite.has_servers || suite.without_network.is_some(),
    };
    CHECKS.iter().filter(asked).map(move |check| {
        let started = Arc::clone(&started);
        let name = format!("{}::{}", suite.name, check.name);
        if let Some(reason) = missing(&suite, check) {
            return Trial::test(name, || Err("the store lacks what this test needs".into()))
                .with_kind(reason)
                .with_ignored_flag(true);
        }
        Trial::test(name, move || {
            let harness = Arc::clone(started.harness.get_or_init(suite.start));
            let network = match check.needs {
                Needs::Network | Needs::Counts => harness.servers(),
                Needs::Nothing | Needs::Processes | Needs::Login => Vec::new(),
            };
            let network = network.into_iter().map(Proxy::to).collect();
            let fixture = Fixture::new(suite, check.name, harness, network);
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on((check.run)(&fixture));
            Ok(())
        })
    })
}

#[expect(clippy::print_stdout, reason = "a test shows what it did")]
/// Returns the test that runs random programs, for twenty seconds unless `LEASEHOLD_PROGRAMS_SECONDS` says otherwise.
pub(super) fn programs_trial(suite: &Suite) -> Trial {
    let suite = *suite;
    Trial::test(
        format!("{}::random_programs_break_no_promise", suite.name),
        move || {
            let found = programs::search(suite).map_err(Failed::from)?;
            println!("{}: {found}", suite.name);
            Ok(())
        },
    )
}

/// Returns what the test needs and the store lacks.
fn missing(suite: &Suite, check: &Check) -> Option<String> {
    if check.needs == Needs::Network && !suite.has_servers {
        return suite
            .without_network
            .map(|reason| format!("no network: {reason}"));
    }
    let absent = check.calls.iter().find(|part| !suite.offers(**part))?;
    Some(format!("no {}", absent.name()))
}
