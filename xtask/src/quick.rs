//! The tests that need nothing but `redis-server`, and take less than three minutes on two cores.

use crate::Failure;
use crate::setup;
use crate::step::step;
use crate::suite::Programs;
use crate::workspace::Workspace;

/// Test programs that run, besides all unit tests.
const TARGETS: &str = "absent_traits adding_a_store addresses allocations contract differential driver \
     embedded_store environment example_store examples fork init it obligations pause promises proxy reload servers wire";

/// Test programs that do not run, and what they test.
const LEFT_OUT: [(&str, &str); 13] = [
    ("crowds", "crowds of waiters on each store"),
    ("faults", "broken servers and networks"),
    ("identity", "searches in the model of the protocol"),
    ("memory", "the memory of many names on each store"),
    (
        "minimal_store",
        "the contract on a store like that in memory",
    ),
    ("pages", "the console examples of the pages"),
    (
        "recipes",
        "what the recipes say, on systemd, S3, and MariaDB",
    ),
    ("runbooks", "the console examples of the runbooks"),
    ("runtimes", "calls from each kind of runtime on each store"),
    ("searches", "searches in the model of the protocol"),
    ("slow", "slow answers on each store"),
    ("unpolled", "attempts that nothing polls on each store"),
    ("sql", "the SQL of the manual, on PostgreSQL"),
];

/// Stores whose servers take long to start: their crates, and their tests of the command, do not run.
const STORES: [(&str, &str); 3] = [
    ("leasehold-etcd", "etcd"),
    ("leasehold-postgres", "postgres"),
    ("leasehold-zookeeper", "zookeeper"),
];

/// Tests that do not run, by a part of their names, and what they test.
const FILTERS: [(&str, &str); 11] = [
    ("administration::", "the command line in its own process"),
    ("elections::", "the command line in its own process"),
    ("holds::", "the command line in its own process"),
    ("is_noticed", "simulated runs of a broken protocol"),
    ("nobody::", "the command line as another user"),
    ("prometheus", "the alerts and the dashboard, on Prometheus"),
    ("records_keep", "simulated runs"),
    (
        "redis_",
        "the command line on Redis, the contract on a quorum, and redis-py",
    ),
    ("results::", "the command line in its own process"),
    ("run::", "the command line in its own process"),
    ("runs_with", "simulated runs"),
];

/// Runs the tests, and says which ones it leaves out. Installs nothing.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Failure> {
    let stores = STORES.iter().map(|(_, name)| *name);
    let others = "redis-py kazoo mariadb moto systemd prometheus".split(' ');
    let skipped = others.chain(stores.clone()).map(str::to_owned);
    let skipped: Vec<String> = skipped.collect();
    setup::check(workspace, &skipped)?;
    step("quick tests", || {
        let mut selected = vec!["--workspace", "--lib", "--bins"];
        selected.extend(STORES.iter().flat_map(|(name, _)| ["--exclude", name]));
        selected.extend(TARGETS.split(' ').flat_map(|name| ["--test", name]));
        let names = FILTERS.iter().map(|(name, _)| *name).chain(stores);
        let programs = Programs {
            selected,
            filters: names.flat_map(|name| ["--skip", name]).collect(),
            others: Vec::new(),
        };
        let outcome = programs.run(workspace, true);
        print!("{}", left_out());
        outcome
    })?;
    Ok(())
}

fn left_out() -> String {
    let programs =
        LEFT_OUT.map(|(name, what)| format!("LEFT OUT the test program {name}: {what}\n"));
    let filters = FILTERS.map(|(name, what)| format!("LEFT OUT tests called *{name}*: {what}\n"));
    let rest = "LEFT OUT the examples in the documentation\n`cargo xtask test` runs them all\n";
    let stores = STORES.map(|(_, name)| format!("LEFT OUT the store {name}\n"));
    programs.concat() + &filters.concat() + &stores.concat() + rest
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Returns the names of the test programs of all crates.
    fn programs() -> BTreeSet<String> {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        let entries = |folder: &Path| {
            let entries = std::fs::read_dir(folder).into_iter().flatten();
            entries.map(|entry| entry.unwrap().path())
        };
        let is_excluded = |path: &Path| STORES.iter().any(|(name, _)| path.ends_with(name));
        let tests = entries(&crates)
            .filter(|folder| !is_excluded(folder))
            .flat_map(|folder| entries(&folder.join("tests")));
        let is_program = |path: &std::path::PathBuf| {
            path.join("main.rs").exists() || path.extension().is_some_and(|end| end == "rs")
        };
        let name = |path: std::path::PathBuf| path.file_stem().unwrap().to_string_lossy().into();
        tests.filter(is_program).map(name).collect()
    }

    #[test]
    fn each_test_program_runs_or_is_named() {
        let left_out = LEFT_OUT.iter().map(|(name, _)| *name);
        let listed: Vec<&str> = TARGETS.split(' ').chain(left_out).collect();
        let unique: BTreeSet<String> = listed.iter().map(ToString::to_string).collect();
        assert_eq!(unique.len(), listed.len(), "a name is listed twice");
        assert_eq!(programs(), unique);
    }

    #[test]
    fn what_is_left_out_is_said() {
        let said = left_out();
        for name in ["pages", "postgres", "redis_", "examples"] {
            assert!(said.contains(name), "{name} in {said}");
        }
    }
}
