use serde_json::{Value, json};

/// The JSON of `once`; `leasehold help once` explains it.
#[derive(Debug)]
pub(crate) struct OnceAnswer<'a> {
    pub(crate) key: &'a str,
    pub(crate) outcome: &'a str,
    pub(crate) fence: u64,
    pub(crate) exit_code: u8,
    /// How many bytes are kept, and whether there were more.
    pub(crate) stdout: (usize, bool),
    pub(crate) stderr: (usize, bool),
    pub(crate) kept_for_ms: Option<u64>,
}

impl OnceAnswer<'_> {
    pub(crate) fn json(&self) -> Value {
        let kept = |(bytes, cut): (usize, bool)| json!({"bytes": bytes, "cut": cut});
        json!({
            "event": "once",
            "key": self.key,
            "outcome": self.outcome,
            "fence": self.fence,
            "exit_code": self.exit_code,
            "stdout": kept(self.stdout),
            "stderr": kept(self.stderr),
            "kept_for_ms": self.kept_for_ms,
        })
    }
}
