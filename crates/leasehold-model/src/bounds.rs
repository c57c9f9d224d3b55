//! How much may happen in one run.

use std::fmt;

/// Bounds of one search. Within them every order of events is tried.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Attempts to take the lock.
    pub attempts: u8,
    /// Clients; attempt `a` is of client `a % clients`, which makes one attempt at a time.
    pub clients: u8,
    /// Rounds of renewal that a guard may send.
    pub renewals: u8,
    /// Restarts of members that lose lease and counter.
    pub restarts: u8,
    /// Forward jumps of members' clocks, which end the lease there.
    pub jumps: u8,
    /// Requests that a member executes a second time.
    pub repeats: u8,
    /// How far apart the members' counters may be at the start.
    pub spread: u8,
    /// What the clients' wall clocks say.
    pub clocks: Clocks,
    /// Whether other steps may come between the two of an acquire: the lease, and the counter.
    pub split: bool,
    /// Which members the clients know.
    pub sets: Sets,
}

/// What the wall clocks of the clients, and so the proposals of their attempts, may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// They order attempts of different ticks; attempts of one tick propose the same.
    Right,
    /// Any of them may be ahead by this many ticks.
    Skewed(u8),
    /// They say anything.
    Wrong,
}

/// Which members the clients know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sets {
    /// All know the same three.
    Three,
    /// All know the same five.
    Five,
    /// Of five members the first client knows the first three, the others the last three.
    Overlapping,
    /// Of five members the first client knows the first three, the others all.
    Longer,
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} attempts", self.attempts)?;
        if self.clients < self.attempts {
            write!(f, " of {} clients", self.clients)?;
        }
        let counts = [
            (self.renewals, "renewal"),
            (self.restarts, "restart"),
            (self.jumps, "jump"),
            (self.repeats, "repeat"),
        ];
        for (count, what) in counts.iter().filter(|(count, _)| *count > 0) {
            let s = if *count > 1 { "s" } else { "" };
            write!(f, ", {count} {what}{s}")?;
        }
        match self.clocks {
            Clocks::Right => {}
            Clocks::Skewed(ticks) => write!(f, ", clocks {ticks} ticks apart")?,
            Clocks::Wrong => write!(f, ", wrong clocks")?,
        }
        if self.spread > 0 {
            write!(f, ", counters apart")?;
        }
        let sets = match self.sets {
            Sets::Three => "",
            Sets::Five => ", 5 members",
            Sets::Overlapping | Sets::Longer => ", sets differ",
        };
        let steps = if self.split { ", split" } else { "" };
        write!(f, "{sets}{steps}")
    }
}

impl Sets {
    /// Members there are.
    #[must_use]
    pub fn members(self) -> usize {
        match self {
            Self::Three => 3,
            _ => 5,
        }
    }

    /// Whether `client` knows `member`.
    #[must_use]
    pub fn lists(self, client: usize, member: usize) -> bool {
        match self {
            Self::Three | Self::Five => true,
            Self::Overlapping if client > 0 => member >= 2,
            Self::Longer if client > 0 => true,
            Self::Overlapping | Self::Longer => member < 3,
        }
    }

    /// More than half of the members that `client` knows.
    #[must_use]
    pub fn majority(self, client: usize) -> usize {
        let known = (0..self.members())
            .filter(|member| self.lists(client, *member))
            .count();
        known / 2 + 1
    }
}

impl Bounds {
    /// Bounds for this many attempts, each by a client of its own, and for no other events.
    #[must_use]
    pub const fn attempts(attempts: u8) -> Self {
        Self {
            attempts,
            clients: attempts,
            renewals: 0,
            restarts: 0,
            jumps: 0,
            repeats: 0,
            spread: 0,
            clocks: Clocks::Right,
            split: true,
            sets: Sets::Three,
        }
    }
}
