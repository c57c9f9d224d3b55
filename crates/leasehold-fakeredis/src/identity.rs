//! What a server reports about itself: `INFO`, `CONFIG GET` and `HELLO`.

use std::cell::RefCell;
use std::collections::BTreeMap;

pub(crate) const VERSION: &str = "7.0.15";

const UNSET_REPLICATION_ID: &str = "0000000000000000000000000000000000000000";

/// The settings that Leasehold reads, with Redis' defaults.
const DEFAULTS: [(&str, &str); 8] = [
    ("appenddirname", "appendonlydir"),
    ("appendfilename", "appendonly.aof"),
    ("appendfsync", "everysec"),
    ("appendonly", "no"),
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("no-appendfsync-on-rewrite", "no"),
    ("save", ""),
];

/// A server's run, its settings, and the values that a test sets.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    pub(crate) number: u64,
    /// How many times the server was restarted.
    pub(crate) restarts: u64,
    pub(crate) started_us: u64,
    settings: BTreeMap<String, String>,
    /// Fields of `INFO` whose value a test replaced.
    pub(crate) info: BTreeMap<String, String>,
    /// The last run id, with its server number and its restart.
    run: RefCell<(u64, u64, String)>,
}

impl Identity {
    pub(crate) fn run_id(&self) -> String {
        let mut run = self.run.borrow_mut();
        if run.2.is_empty() || (run.0, run.1) != (self.number, self.restarts) {
            let name = format!("server {} run {}", self.number, self.restarts);
            let id = sha1_smol::Sha1::from(name).digest().to_string();
            *run = (self.number, self.restarts, id);
        }
        run.2.clone()
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.settings.insert(name.to_owned(), value.to_owned());
    }

    fn setting(&self, name: &str) -> &str {
        let own = self.settings.get(name).map(String::as_str);
        let default = || DEFAULTS.iter().find(|(it, _)| *it == name);
        own.or_else(|| default().map(|(_, value)| *value))
            .unwrap_or_default()
    }

    pub(crate) fn settings(&self) -> BTreeMap<&str, &str> {
        let own = self.settings.iter();
        let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
        DEFAULTS.into_iter().chain(own).collect()
    }

    /// The text of `INFO`, for one section or for all.
    pub(crate) fn info(&self, section: Option<&str>, now_us: u64) -> String {
        let uptime = now_us.saturating_sub(self.started_us) / 1_000_000;
        let (run_id, uptime) = (self.run_id(), uptime.to_string());
        let has_aof = if self.setting("appendonly") == "yes" {
            "1"
        } else {
            "0"
        };
        let sections: [(&str, &[(&str, &str)]); 5] = [
            (
                "Server",
                &[
                    ("redis_version", VERSION),
                    ("redis_mode", "standalone"),
                    ("run_id", &run_id),
                    ("uptime_in_seconds", &uptime),
                ],
            ),
            (
                "Memory",
                &[
                    ("maxmemory", self.setting("maxmemory")),
                    ("maxmemory_policy", self.setting("maxmemory-policy")),
                ],
            ),
            (
                "Persistence",
                &[
                    ("loading", "0"),
                    ("aof_enabled", has_aof),
                    ("aof_last_write_status", "ok"),
                ],
            ),
            (
                "Replication",
                &[
                    ("role", "master"),
                    ("connected_slaves", "0"),
                    ("master_replid", &run_id),
                    ("master_replid2", UNSET_REPLICATION_ID),
                ],
            ),
            ("Cluster", &[("cluster_enabled", "0")]),
        ];
        let is_asked =
            |name: &str| section.is_none_or(|section| name.eq_ignore_ascii_case(section));
        let mut text = String::new();
        for (name, fields) in sections.into_iter().filter(|(name, _)| is_asked(name)) {
            let mut push = |parts: &[&str]| parts.iter().for_each(|part| text.push_str(part));
            push(&["# ", name, "\r\n"]);
            for (field, value) in fields {
                let value = self.info.get(*field).map_or(*value, String::as_str);
                push(&[field, ":", value, "\r\n"]);
            }
            push(&["\r\n"]);
        }
        text
    }
}
