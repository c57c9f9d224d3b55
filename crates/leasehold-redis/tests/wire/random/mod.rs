//! Random calls of the scripts, compared with a model of leases.
//!
//! Owners ask, ask again, renew, release, and are broken, in all modes, while virtual time passes. After
//! each call the server has the leases of the model, and nothing stays when all leases ended.

mod memory;
mod model;
mod run;

use self::run::Run;

/// A few seconds in a debug build.
const RUNS: u64 = 120;
const CALLS: usize = 150;

#[test]
fn random_calls_agree_with_a_model() {
    for seed in 0..RUNS {
        let mut run = Run::start(seed);
        for _ in 0..CALLS {
            run.call();
        }
        run.end();
    }
}
