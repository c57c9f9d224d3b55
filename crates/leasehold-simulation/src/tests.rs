use crate::faults::Faults;
use crate::mutation::Mutation;
use crate::run::{Outcome, run_with};

fn run(seed: u64, faults: Faults) -> Outcome {
    run_with(seed, faults, Mutation::default(), false)
}

#[test]
fn equal_seeds_have_equal_histories() {
    for seed in 0..8 {
        let (once, again) = (run(seed, Faults::all()), run(seed, Faults::all()));
        assert_eq!(once.fingerprint(), again.fingerprint(), "seed {seed}");
    }
}

#[test]
fn runs_without_faults_break_no_invariant() {
    for seed in 0..150 {
        let outcome = run(seed, Faults::NONE);
        assert!(outcome.violations.is_empty(), "{outcome}");
    }
}

#[test]
fn runs_with_faults_break_no_invariant() {
    for seed in 0..150 {
        let outcome = run(seed, Faults::all());
        assert!(outcome.violations.is_empty(), "{outcome}");
    }
}

/// Runs until one of the checks rejects a run with changed scripts.
fn is_noticed(from: &str, to: &str, checks: &[&str], faults: &str, seeds: u64) {
    let faults: Faults = faults.parse().unwrap();
    let mutation = Mutation::new(from, to);
    for seed in 0..seeds {
        let outcome = run_with(seed, faults, mutation.clone(), false);
        if let Some(found) = outcome
            .violations
            .iter()
            .find(|it| checks.contains(&it.check))
        {
            println!("seed {seed}: {found}");
            return;
        }
    }
    panic!("{to:?} was not noticed in {seeds} runs");
}

#[test]
fn release_that_calls_nobody_is_noticed() {
    let from = "if not successor and not notified_until then";
    is_noticed(from, "if false then", &["idle", "stuck"], "none", 200);
}

#[test]
fn release_by_another_owner_is_noticed() {
    let from = "  if value == owner or value == BROKEN .. owner then\n";
    let to = "  if value then\n";
    is_noticed(from, to, &["foreign release"], "none", 200);
}

#[test]
fn release_that_frees_a_later_round_is_noticed() {
    let from = "  if value == owner or value == BROKEN .. owner then\n";
    // All rounds of a wait have its client and its instant.
    let same = "value and string.sub(value, 1, 17) == string.sub(owner, 1, 17) \
                and string.sub(value, 34, 47) == string.sub(owner, 34, 47)";
    let to = format!("  if {same} then\n");
    let checks = ["exclusion", "lease end"];
    is_noticed(from, &to, &checks, "late-bytes", 1_500);
}

#[test]
fn newcomer_that_ignores_the_queue_is_noticed() {
    let from = "if ahead and head and head ~= entry and not is_barging then";
    is_noticed(from, "if false then", &["turn order"], "none", 400);
}

#[test]
fn lease_that_is_not_extended_is_noticed() {
    let from = "elseif call('PTTL', lock) < ttl then";
    is_noticed(
        from,
        "elseif false then",
        &["lease end", "exclusion"],
        "none",
        200,
    );
}

#[test]
fn requeue_that_loses_the_place_is_noticed() {
    let from = "if ARGV[2] ~= '' then\n  enqueue(ARGV[2]";
    let to = "if false then\n  enqueue(ARGV[2]";
    is_noticed(from, to, &["kept positions"], "none", 200);
}

#[test]
fn fence_that_does_not_grow_is_noticed() {
    let from = "drawn = text(call('ZINCRBY', fence, 1, 'f'))";
    is_noticed(from, "drawn = proposal", &["fence order"], "all", 400);
}

#[test]
fn heartbeat_that_repairs_nothing_is_noticed() {
    // Either repair finds most of what the other one would.
    let from = "sweep(entry)\n  local turn = admits() ~= false and hand_over(entry)";
    is_noticed(from, "local turn = false", &["idle", "stuck"], "all", 400);
}

#[test]
fn repair_of_a_lock_in_use_is_noticed() {
    let from = "if value or is_broken or in_gap() then";
    is_noticed(
        from,
        "if is_broken then",
        &["resurrection"],
        "all,-drift",
        800,
    );
}

#[test]
fn permit_of_another_holder_is_noticed() {
    let checks = ["exclusion", "foreign release", "lease end"];
    is_noticed("return free[ahead + 1]", "return '0'", &checks, "none", 300);
}

#[test]
fn fence_without_confirmation_is_noticed() {
    let from = "local raised = call('ZADD', fence, 'GT', 'CH', ARGV[2], 'f')";
    is_noticed(from, "local raised = 1", &["fence order"], "all", 1_500);
}

#[test]
fn renewal_that_revives_is_noticed() {
    let from = "return (not value or value == NEXT) and 0 or value == BROKEN .. owner and -2 or -1";
    let to = "call('SET', lock, owner, 'PX', ttl) return 1";
    is_noticed(from, to, &["resurrection"], "all", 800);
}
