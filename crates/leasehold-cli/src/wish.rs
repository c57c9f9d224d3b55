use std::time::Duration;

use leasehold::{Client, LockSet, Mode, Permits};

use crate::exit_code::ExitCode;
use crate::failure::Failure;

/// Which locks are wanted, how, and for how long that is waited for.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) name: String,
    /// Those wanted beside it.
    pub(crate) also: Vec<String>,
    pub(crate) shared: bool,
    pub(crate) permits: Option<Permits>,
    pub(crate) ttl: Duration,
    /// After which they count as lost.
    pub(crate) max_hold: Option<Duration>,
    /// For how long they stay shut after an unclean end.
    pub(crate) lock_delay: Option<Duration>,
    pub(crate) no_wait: bool,
    pub(crate) wait: Option<Duration>,
    pub(crate) busy_code: u8,
    pub(crate) json: bool,
}

impl Wish {
    /// One lock alone, waited for without a limit.
    pub(crate) fn alone(name: &str, ttl: Duration) -> Self {
        Self {
            name: name.to_owned(),
            also: Vec::new(),
            shared: false,
            permits: None,
            ttl,
            max_hold: None,
            lock_delay: None,
            no_wait: false,
            wait: None,
            busy_code: ExitCode::BUSY.get(),
            json: false,
        }
    }

    /// The names of all locks, in the order in which they are taken.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.also.iter().map(String::as_str).collect();
        names.push(&self.name);
        names.sort_unstable();
        names.dedup();
        names
    }

    pub(crate) fn mode(&self) -> Mode {
        match self.permits {
            Some(permits) => Mode::Permit(permits),
            None if self.shared => Mode::Shared,
            None => Mode::Exclusive,
        }
    }

    /// The locks, as `client` is to take them.
    pub(crate) fn locks(&self, client: &Client) -> LockSet {
        let locks = client.lock_all(self.names());
        let mut locks = locks.ttl(self.ttl).mode(self.mode());
        if let Some(wait) = self.wait {
            locks = locks.wait(wait);
        }
        if let Some(max_hold) = self.max_hold {
            locks = locks.max_hold(max_hold);
        }
        if let Some(delay) = self.lock_delay {
            locks = locks.lock_delay(delay);
        }
        locks
    }

    /// For how long they are held at least, roughly, if nothing renews them.
    pub(crate) fn shortest_hold(&self) -> Duration {
        self.max_hold.map_or(self.ttl, |hold| hold.min(self.ttl))
    }

    /// The default TTL too may be longer than a set allows.
    pub(crate) fn refuse_ttl_over(&self, longest: Duration) -> Result<(), Failure> {
        if self.ttl <= longest {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "TTL {:?} is longer than max_ttl {longest:?}, the longest of this store: give a \
             shorter --ttl",
            self.ttl
        )))
    }
}
