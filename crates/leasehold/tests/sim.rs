//! Whole worlds of clients, servers and weather, each from one seed (docs/simulation.md).

use leasehold_testkit::sim::{Faults, run, run_all};

#[test]
fn a_thousand_worlds_keep_every_invariant() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let summary = run_all(0..WORLDS, Faults::all(), threads);
    assert!(
        summary.panicked.is_empty() && summary.broken.is_empty(),
        "{summary}"
    );
    // Else nothing was contended for, and nothing shown.
    let grants = summary.grants;
    assert!(grants.all > WORLDS * 5, "{summary}");
    for some in [grants.shared, grants.permits, grants.of_sets] {
        assert!(some > WORLDS / 2, "{summary}");
    }
    assert!(grants.inherited > WORLDS, "{summary}");
    assert!(grants.downgraded > WORLDS / 20, "{summary}");
}

const WORLDS: u64 = 1_000;

/// Nothing excuses what goes wrong in these, so each shows more than one with faults.
const WORLDS_WITHOUT_FAULTS: u64 = 300;

#[test]
fn a_seed_is_one_history() {
    for seed in 0..10 {
        let runs = [(); 2].map(|()| run(seed, Faults::all()).fingerprint);
        assert_eq!(runs[0], runs[1], "seed {seed}");
    }
}

#[test]
fn worlds_without_faults_grant_and_free_at_once() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let summary = run_all(0..WORLDS_WITHOUT_FAULTS, Faults::NONE, threads);
    assert!(
        summary.panicked.is_empty() && summary.broken.is_empty(),
        "{summary}"
    );
    assert!(summary.grants.all > WORLDS_WITHOUT_FAULTS * 5, "{summary}");
}
