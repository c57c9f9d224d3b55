use std::time::Duration;

use leasehold::once::Once;
use leasehold::store::Permits;
use leasehold::{Client, Lock, LockSet, Mode};

use crate::output::exit_code::ExitCode;

/// Which locks to acquire, how, and how long to wait.
#[derive(Clone, Debug)]
pub(crate) struct LockOptions {
    pub(crate) name: String,
    /// Further locks.
    pub(crate) also: Vec<String>,
    pub(crate) shared: bool,
    pub(crate) permits: Option<Permits>,
    /// `None` for the default of the library, which the store may shorten.
    pub(crate) ttl: Option<Duration>,
    /// The maximum hold time.
    pub(crate) max_hold: Option<Duration>,
    /// The delay for the next holder after an unclean end.
    pub(crate) lock_delay: Option<Duration>,
    pub(crate) no_wait: bool,
    pub(crate) wait: Option<Duration>,
    pub(crate) busy_code: u8,
    pub(crate) json: bool,
    /// The program as others see it.
    pub(crate) program: &'static str,
    /// What else others see of the holder.
    pub(crate) label: Option<String>,
    pub(crate) command: Option<String>,
}

impl LockOptions {
    /// One exclusive lock, without a limit for the wait.
    pub(crate) fn alone(name: &str, ttl: Option<Duration>) -> Self {
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
            program: "leasehold",
            label: None,
            command: None,
        }
    }

    /// The names of all locks, in the order of acquisition.
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

    /// The locks of `client` with these options.
    pub(crate) fn locks(&self, client: &Client) -> LockSet {
        let locks = client.lock_all(self.names());
        let mut locks = locks.mode(self.mode());
        if let Some(ttl) = self.ttl {
            locks = locks.ttl(ttl);
        }
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

    /// The request with the TTL.
    pub(crate) fn of_once(&self, once: Once) -> Once {
        match self.ttl {
            Some(ttl) => once.ttl(ttl),
            None => once,
        }
    }

    /// The TTL that the locks have at most.
    pub(crate) fn longest_ttl(&self) -> Duration {
        self.ttl.unwrap_or(Lock::DEFAULT_TTL)
    }

    /// How long they are held without renewals, roughly.
    pub(crate) fn shortest_hold(&self) -> Duration {
        let ttl = self.longest_ttl();
        self.max_hold.map_or(ttl, |hold| hold.min(ttl))
    }
}
