use std::ffi::OsString;
use std::time::Duration;

use leasehold::store::exact_span;

use crate::options::lock_options::LockOptions;
use crate::output::failure::Failure;

/// The command to run while the locks are held.
#[derive(Clone, Debug)]
pub(crate) struct CommandSpec {
    pub(crate) command: Vec<OsString>,
    /// The time between SIGTERM and SIGKILL.
    pub(crate) grace: Duration,
    /// The time from SIGKILL to the deadline, enough for the last process to disappear.
    pub(crate) margin: Duration,
    /// The minimum hold time, even if the command ends earlier.
    pub(crate) min_hold: Option<Duration>,
    /// Whether the command gets the password of the store.
    pub(crate) gets_password: bool,
    /// Whether the store keeps how the command ended.
    pub(crate) records_end: bool,
}

impl CommandSpec {
    /// The command, if `grace` leaves time for renewals.
    pub(crate) fn new(
        command: &[OsString],
        lock_options: &LockOptions,
        grace: Option<Duration>,
    ) -> Result<Self, Failure> {
        let span = lock_options.shortest_hold();
        let grace = match grace {
            None => (span / 6).min(Duration::from_secs(5)),
            // Renewals begin at ttl/3 at the latest. A longer grace would leave no time for a second try.
            Some(grace) if grace >= span / 3 => {
                let of = match span < lock_options.longest_ttl() {
                    true => "--max-hold",
                    false => "TTL",
                };
                return Err(Failure::usage(format!(
                    "--grace {} is too long; it must be less than a third of {of}, {}",
                    exact_span(grace),
                    exact_span(span)
                )));
            }
            Some(grace) => grace,
        };
        Ok(Self {
            command: command.to_vec(),
            grace,
            margin: (span / 30).min(Duration::from_secs(1)),
            min_hold: None,
            gets_password: false,
            records_end: false,
        })
    }

    /// Passes the password of the store to the command if `is_wanted`.
    pub(crate) fn passing_store(mut self, is_wanted: bool) -> Self {
        self.gets_password = is_wanted;
        self
    }

    /// Shortens the times of the end to what a lease allows that lasts for `left`. A server may grant less than the TTL,
    /// and a long grace would then leave no time for a second renewal.
    pub(crate) fn within(&self, left: Option<Duration>) -> Self {
        let mut spec = self.clone();
        if let Some(left) = left {
            spec.grace = spec.grace.min(left * 2 / 5);
            spec.margin = spec.margin.min(left / 10);
        }
        spec
    }

    /// Keeps the locks for at least `span`, which must not exceed the maximum hold time.
    pub(crate) fn keeping(
        mut self,
        span: Duration,
        lock_options: &LockOptions,
    ) -> Result<Self, Failure> {
        if let Some(most) = lock_options.max_hold.filter(|most| span > *most) {
            return Err(Failure::usage(format!(
                "--min-hold {} exceeds --max-hold {}",
                exact_span(span),
                exact_span(most)
            )));
        }
        self.min_hold = Some(span);
        Ok(self)
    }
}
