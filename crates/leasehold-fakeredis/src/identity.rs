//! What a server says about itself: `INFO`, `CONFIG GET` and `HELLO`.

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

/// A server's run, its settings, and what a test wants it to say.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    pub(crate) number: u64,
    /// How often the server was restarted.
    pub(crate) restarts: u64,
    pub(crate) started_us: u64,
    settings: BTreeMap<String, String>,
    /// Fields of `INFO` with another value than usual.
    pub(crate) info: BTreeMap<String, String>,
}

impl Identity {
    pub(crate) fn run_id(&self) -> String {
        let name = format!("server {} run {}", self.number, self.restarts);
        sha1_smol::Sha1::from(name).digest().to_string()
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.settings.insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn settings(&self) -> BTreeMap<&str, &str> {
        let own = self.settings.iter();
        let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
        DEFAULTS.into_iter().chain(own).collect()
    }

    /// The text of `INFO`, for one section or for all.
    pub(crate) fn info(&self, section: Option<&str>, now_us: u64) -> String {
        let settings = self.settings();
        let uptime = now_us.saturating_sub(self.started_us) / 1_000_000;
        let (run_id, uptime) = (self.run_id(), uptime.to_string());
        let has_aof = if settings["appendonly"] == "yes" {
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
                    ("maxmemory", settings["maxmemory"]),
                    ("maxmemory_policy", settings["maxmemory-policy"]),
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
            let fields = fields.iter().map(|(field, value)| {
                let value = self.info.get(*field).map_or(*value, String::as_str);
                format!("{field}:{value}\r\n")
            });
            text.push_str(&format!("# {name}\r\n{}\r\n", fields.collect::<String>()));
        }
        text
    }
}
