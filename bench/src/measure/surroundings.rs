use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::measure::machine;
use crate::measure::peers::{self, answer};
use crate::options::Options;

/// The conditions of a measurement: machine, versions, settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Surroundings {
    /// Seconds since 1970.
    pub(crate) began: u64,
    pub(crate) machine: String,
    /// Name and version, of what ran.
    pub(crate) versions: Vec<(String, String)>,
    pub(crate) settings: String,
}

impl Surroundings {
    pub(crate) fn now(options: &Options) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            began: since.map_or(0, |since| since.as_secs()),
            machine: machine::description(),
            versions: versions(),
            settings: options.command.clone(),
        }
    }

    /// The day on which it began, as `2026-01-31`.
    pub(crate) fn date(&self) -> String {
        let mut date = Command::new("date");
        date.args(["--utc", &format!("--date=@{}", self.began), "+%F"]);
        answer(&mut date).unwrap_or_else(|| format!("{} s after 1970", self.began))
    }
}

fn versions() -> Vec<(String, String)> {
    let mut versions = vec![
        ("Leasehold".into(), commit()),
        ("Redis server".into(), redis_server()),
    ];
    let crates = ["redis", "tokio", "rslock", "redlock"];
    let lock = include_str!("../../../Cargo.lock");
    versions.extend(crates.map(|name| (format!("{name} (crate)"), newest(lock, name))));
    versions.extend(peers::versions());
    versions
}

/// Returns the version of this crate and the commit, and marks uncommitted changes.
fn commit() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty", "--exclude=*"]);
    match answer(&mut git) {
        Some(commit) => format!("{version} ({commit})"),
        None => version.into(),
    }
}

/// `Redis server v=7.0.15 sha=… malloc=jemalloc-5.2.1 …`
fn redis_server() -> String {
    let told = answer(Command::new("redis-server").arg("--version")).unwrap_or_default();
    let version = told
        .split_whitespace()
        .find_map(|word| word.strip_prefix("v="));
    version.unwrap_or("unknown").into()
}

/// Returns the last version of a package that `lock` names. That is the one we chose; an older one is
/// there only for another dependency.
fn newest(lock: &str, name: &str) -> String {
    let named = format!("name = \"{name}\"\nversion = \"");
    let found = lock
        .rsplit_once(&named)
        .and_then(|(_, rest)| rest.split('"').next());
    found.unwrap_or("unknown").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_the_lock_file_is_ours() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"0.2\"\n\n[[package]]\nname = \"a\"\nversion = \"1.0\"\n";
        assert_eq!(newest(lock, "a"), "1.0");
        assert_eq!(newest(lock, "b"), "unknown");
    }
}
