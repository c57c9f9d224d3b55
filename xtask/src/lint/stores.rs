//! The command line names the types of a store in one folder. A further store is then one more implementation there.

/// The sources of the command line.
const COMMAND_LINE: &str = "crates/leasehold-cli/src/";

/// The folder that may name stores, below those sources.
const STORES: &str = "store/";

/// The crates of the stores, as code names them.
const CRATES: [&str; 6] = [
    "leasehold_etcd",
    "leasehold_file",
    "leasehold_postgres",
    "leasehold_redis",
    "leasehold_stores",
    "leasehold_zookeeper",
];

/// Returns a violation if the file names a store that it may not know.
pub(super) fn violation(path: &str, text: &str) -> Option<String> {
    let below = path.strip_prefix(COMMAND_LINE)?;
    if below.starts_with(STORES) {
        return None;
    }
    let named = CRATES.iter().find(|name| text.contains(**name))?;
    Some(format!(
        "{path} names {named}: only {COMMAND_LINE}{STORES} may; add to the traits in its backend.rs"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_outside_of_its_folder_is_reported() {
        let text = "use leasehold_redis::RedisStore;\n";
        for path in [
            "crates/leasehold-cli/src/store/redis/mod.rs",
            "crates/leasehold-cli/tests/it/main.rs",
            "crates/leasehold-redis/src/lib.rs",
        ] {
            assert_eq!(violation(path, text), None);
        }
        let path = "crates/leasehold-cli/src/commands/admin/init.rs";
        assert_eq!(violation(path, "use leasehold::Client;\n"), None);
        let reported = violation(path, text).unwrap();
        assert!(
            reported.contains("init.rs names leasehold_redis"),
            "{reported}"
        );
    }
}
