use crate::checks::Violation;
use crate::faults::Faults;
use crate::mutation::Mutation;
use crate::run::run_records_with;

fn first_violation(seed: u64, faults: Faults, mutation: &Mutation) -> Option<Violation> {
    let outcome = run_records_with(seed, faults, mutation.clone(), false);
    let mut violations = outcome.violations.into_iter();
    violations.find(|it| it.check == "records")
}

#[test]
fn records_keep_what_was_acknowledged() {
    for faults in [Faults::NONE, Faults::all()] {
        for seed in 0..40 {
            let found = first_violation(seed, faults, &Mutation::default());
            assert!(found.is_none(), "seed {seed}: {found:?}");
        }
    }
}

fn is_noticed(from: &str, to: &str, faults: Faults) {
    let mutation = Mutation::new(from, to);
    let mut seeds = 0..600;
    let found = seeds.find_map(|seed| Some((seed, first_violation(seed, faults, &mutation)?)));
    let (seed, violation) = found.unwrap_or_else(|| panic!("{to:?} was not noticed"));
    println!("seed {seed}: {violation}");
}

#[test]
fn opening_that_shuts_out_none_is_noticed() {
    let from = "redis.call('SET', greatest, version, 'PX', MEMORY_MS)\nreturn shown(record)";
    is_noticed(from, "return shown(record)", Faults::all());
}

#[test]
fn write_of_a_smaller_fence_is_noticed() {
    let from = "if is_after(seen, version) then\n  return seen";
    is_noticed(from, "if false then\n  return seen", Faults::all());
}

#[test]
fn write_that_keeps_the_old_value_is_noticed() {
    let from = "redis.call('HSET', record, 'version', version, 'value', ARGV[3])";
    let to = format!("if redis.call('EXISTS', record) == 0 then {from} end");
    is_noticed(from, &to, Faults::all());
}
