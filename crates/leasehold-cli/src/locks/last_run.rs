//! How the last command ended under a lock: the record that `run --record-end` writes next to it.

use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock, WallTime};
use leasehold::env::Env;
use leasehold::store::printable;
use leasehold::{Client, Error, ErrorKind, Fence, Guard};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::options::lock_options::LockOptions;
use crate::output::exit_code::ExitCode;
use crate::output::time_text;
use crate::process::user;

/// The end of a command that ran under a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastRun {
    kind: RecordKind,
    /// The holder, for people.
    holder: String,
    host: String,
    pid: u32,
    fence: u64,
    /// When the command began and ended, in microseconds since 1970.
    since: u64,
    until: u64,
    /// `None` if the lock was lost, or the command did not end by itself.
    exit_code: Option<u8>,
    /// Whether the exit code says why the command could not be started.
    #[serde(default)]
    not_started: bool,
}

/// How a command ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RunEnd {
    Ended(ExitCode),
    NotStarted(ExitCode),
    /// The lock was lost, or the command did not end by itself.
    Lost,
}

/// Tells the record from those of elections and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum RecordKind {
    #[serde(rename = "run/1")]
    Run,
}

impl LastRun {
    /// How long a store keeps it.
    const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

    /// The end of a command that began at `since`, and ends now.
    pub(crate) fn now(
        lock_options: &LockOptions,
        fence: Fence,
        since: WallTime,
        end: RunEnd,
    ) -> Self {
        let client = Env::default()
            .this_process(Some(lock_options.program.into()))
            .with_user(Some(&user::name()))
            .with_label(lock_options.label.as_deref())
            .with_command(lock_options.command.as_deref());
        Self {
            kind: RecordKind::Run,
            holder: client.to_string(),
            host: client.host,
            pid: client.pid,
            fence: fence.get(),
            since: since.as_micros(),
            until: SystemClock.wall().as_micros(),
            exit_code: match end {
                RunEnd::Ended(code) | RunEnd::NotStarted(code) => Some(code.get()),
                RunEnd::Lost => None,
            },
            not_started: matches!(end, RunEnd::NotStarted(_)),
        }
    }

    /// Writes the record, unless that of something else is there.
    pub(crate) async fn write(&self, guard: &Guard) -> Result<(), Error> {
        let record = guard.record();
        if let Some(written) = record.open().await?
            && !written.bytes.is_empty()
            && Self::parse(&written.bytes).is_none()
        {
            let text = "the name of the lock is that of an election or a result, too, which has the record";
            return Err(Error::new(ErrorKind::Corrupt, text).with_key(guard.key()));
        }
        let text = serde_json::to_vec(self).unwrap_or_default();
        record.write(text, Self::KEPT).await
    }

    /// Reads the record. `None` if there is none, or another one, or if the store does not show it.
    pub(crate) async fn read(client: &Client, lock: &str) -> Option<Self> {
        let reading = client.record(lock).read().await.ok()?;
        Self::parse(&reading.written?.bytes)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut run: Self = serde_json::from_slice(bytes).ok()?;
        // Any user of the store can have written it, and terminals show it.
        run.holder = printable(&run.holder);
        run.host = printable(&run.host);
        Some(run)
    }

    /// One line for people.
    pub(crate) fn line(&self, lock: &str, now: WallTime) -> String {
        let until = time_text::timestamp_and_age(WallTime::from_micros(self.until), now);
        let ran = Duration::from_micros(self.until.saturating_sub(self.since));
        let end = match self.exit_code {
            Some(code) if self.not_started => {
                format!("the command could not be started (exit {code})")
            }
            Some(code) => format!("exit {code}"),
            None => "lock lost".into(),
        };
        format!(
            "{lock}: last run by {}, ended {until} after {}, {end}\n",
            self.holder,
            time_text::passed(ran)
        )
    }

    /// The same for programs.
    pub(crate) fn json(&self) -> Value {
        json!({
            "holder": self.holder,
            "host": self.host,
            "pid": self.pid,
            "fence": self.fence,
            "since": time_text::instant(WallTime::from_micros(self.since)),
            "until": time_text::instant(WallTime::from_micros(self.until)),
            "exit_code": self.exit_code,
        })
    }
}
