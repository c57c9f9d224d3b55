use std::ops::RangeInclusive;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::error::Fallible;

/// The command line of a worker.
#[derive(Debug)]
pub(crate) struct Task {
    /// How long to wait between two attempts, if specified.
    pub(crate) delay: Option<Duration>,
    /// Whether the callers run on all cores, or on one thread.
    spread_out: bool,
    key: String,
    /// Whether each handle has its own key; otherwise all contend for one.
    apart: bool,
    pub(crate) waiters: usize,
    pub(crate) hold: Duration,
    pub(crate) away: Duration,
    pub(crate) ports: Vec<u16>,
}

impl Task {
    /// `SETTINGS KEY one|each WAITERS HOLD AWAY PORT…`, spans in microseconds; settings are
    /// `default`, `multi` for callers on all cores, or a delay in milliseconds.
    pub(super) fn parse(arguments: &[String]) -> Option<Self> {
        let [settings, key, keys, waiters, hold, away, ports @ ..] = arguments else {
            return None;
        };
        Some(Self {
            delay: settings.parse().ok().map(Duration::from_millis),
            spread_out: settings == "multi",
            key: key.clone(),
            apart: keys == "each",
            waiters: waiters.parse().ok()?,
            hold: Duration::from_micros(hold.parse().ok()?),
            away: Duration::from_micros(away.parse().ok()?),
            ports: ports
                .iter()
                .map(|port| port.parse().ok())
                .collect::<Option<_>>()?,
        })
    }

    /// Returns the key of each handle. If each handle has its own key, there are two more handles, the
    /// first and the last. They contend for another key, to prove that the lock is real, because a client
    /// may treat a key that it once saw held differently from one that is always free.
    pub(crate) fn keys(&self) -> impl Iterator<Item = String> {
        let last = if self.apart {
            self.waiters + 1
        } else {
            self.waiters - 1
        };
        (0..=last).map(move |handle| match handle {
            _ if !self.apart || handle == 0 || handle == last => self.key.clone(),
            own => format!("{}-{own}", self.key),
        })
    }

    /// Of the handles, those that have a key of their own.
    pub(crate) fn own(&self) -> RangeInclusive<usize> {
        1..=self.waiters
    }

    /// The port of the only server.
    pub(crate) fn port(&self) -> Fallible<u16> {
        match self.ports.as_slice() {
            [port] => Ok(*port),
            ports => Err(format!("{} servers", ports.len()).into()),
        }
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        let ports = self.ports.iter();
        ports
            .map(|port| format!("redis://127.0.0.1:{port}"))
            .collect()
    }

    pub(crate) fn runtime(&self) -> Fallible<Runtime> {
        let mut builder = if self.spread_out {
            Builder::new_multi_thread()
        } else {
            Builder::new_current_thread()
        };
        Ok(builder.enable_all().build()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(line: &str) -> Task {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Task::parse(&words).expect("a task")
    }

    #[test]
    fn waiters_of_one_key_share_it_and_others_have_one_each_between_two_rivals() {
        let keys = |line| task(line).keys().collect::<Vec<_>>();
        assert_eq!(keys("2 k one 2 1000 5000 7001"), ["k", "k"]);
        let line = "multi k each 2 0 0 7001 7002";
        assert_eq!(keys(line), ["k", "k-1", "k-2", "k"]);
        assert_eq!(task(line).own(), 1..=2);
    }
}
