use std::fmt;
use std::str::FromStr;

/// One kind of misfortune of a simulated world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FaultClass {
    /// Servers stop, keep what they are sent, and carry it out when they go on.
    Freeze,
    /// Servers answer late.
    Slow,
    /// Servers crash, and come back with all their data.
    Crash,
    /// Servers come back without what they were told in the last seconds.
    RestartStale,
    /// Servers come back without data.
    RestartEmpty,
    /// Servers are told FLUSHALL.
    Flush,
    /// All servers are told FLUSHALL, so that none of them remembers that there is a set.
    FlushAll,
    /// Servers' clocks are moved.
    ClockSteps,
    /// The clocks of all machines run at rates up to 4 % off.
    Drift,
    /// Clients and servers cannot reach each other for a while.
    Partition,
    /// Messages are lost, and at last their connection.
    Loss,
    /// Messages take far longer than anybody waits.
    Delay,
    /// Requests are carried out a second time, also long after.
    Repeat,
    /// Requests of a connection that was given up are carried out all the same, after those of the
    /// connection that followed it.
    Late,
    /// Clients stand still, as a stopped process does.
    Pause,
    /// Clients stand still, and their clocks with them, as a paused virtual machine does. What they
    /// hold then is outside the promise of exclusion; fences still order it.
    FrozenClock,
    /// Clients vanish, holding what they hold.
    ClientCrash,
    /// The wall clocks of clients are wrong by minutes, or stand still. As after a lost counter
    /// fences rest on them, worlds with this fault lose no counters.
    WildClock,
    /// Two members of the set are the same server.
    SameServer,
    /// One client was given another list of members.
    OtherSet,
    /// Once all is well but a minority is dead, a client asks that did not ask since members
    /// restarted.
    Idle,
}

impl FaultClass {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::Freeze,
        Self::Slow,
        Self::Crash,
        Self::RestartStale,
        Self::RestartEmpty,
        Self::Flush,
        Self::FlushAll,
        Self::ClockSteps,
        Self::Drift,
        Self::Partition,
        Self::Loss,
        Self::Delay,
        Self::Repeat,
        Self::Late,
        Self::Pause,
        Self::FrozenClock,
        Self::ClientCrash,
        Self::WildClock,
        Self::SameServer,
        Self::OtherSet,
        Self::Idle,
    ];

    /// Those that make a server forget what it granted.
    pub const FORGETTING: [Self; 4] = [
        Self::RestartStale,
        Self::RestartEmpty,
        Self::Flush,
        Self::FlushAll,
    ];

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Freeze => "freeze",
            Self::Slow => "slow",
            Self::Crash => "crash",
            Self::RestartStale => "restart-stale",
            Self::RestartEmpty => "restart-empty",
            Self::Flush => "flush",
            Self::FlushAll => "flush-all",
            Self::ClockSteps => "clock-steps",
            Self::Drift => "drift",
            Self::Partition => "partition",
            Self::Loss => "loss",
            Self::Delay => "delay",
            Self::Repeat => "repeat",
            Self::Late => "late",
            Self::Pause => "pause",
            Self::FrozenClock => "frozen-clock",
            Self::ClientCrash => "client-crash",
            Self::WildClock => "wild-clock",
            Self::SameServer => "same-server",
            Self::OtherSet => "other-set",
            Self::Idle => "idle",
        }
    }
}

/// The faults that a world may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults(u32);

impl Faults {
    /// No fault at all.
    pub const NONE: Self = Self(0);

    /// Every fault.
    pub fn all() -> Self {
        FaultClass::ALL.into_iter().collect()
    }

    /// Whether `class` is among them.
    pub fn has(self, class: FaultClass) -> bool {
        self.0 & (1 << class as u8) != 0
    }

    /// The same without `class`.
    #[must_use]
    pub fn without(self, class: FaultClass) -> Self {
        Self(self.0 & !(1 << class as u8))
    }

    /// Those among them.
    pub fn iter(self) -> impl Iterator<Item = FaultClass> {
        FaultClass::ALL
            .into_iter()
            .filter(move |class| self.has(*class))
    }

    /// Whether any of `classes` is among them.
    pub fn any_of(self, classes: &[FaultClass]) -> bool {
        classes.iter().any(|class| self.has(*class))
    }
}

impl FromIterator<FaultClass> for Faults {
    fn from_iter<I: IntoIterator<Item = FaultClass>>(classes: I) -> Self {
        let bits = classes.into_iter().map(|class| 1 << class as u8);
        Self(bits.fold(0, |all, bit| all | bit))
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(FaultClass::name).collect();
        let absent = FaultClass::ALL
            .into_iter()
            .filter(|class| !self.has(*class));
        let absent: Vec<_> = absent.map(|class| format!(",-{}", class.name())).collect();
        if names.is_empty() {
            f.write_str("none")
        } else if absent.len() < names.len() {
            write!(f, "all{}", absent.concat())
        } else {
            f.write_str(&names.join(","))
        }
    }
}

/// `all`, `none`, names, and names to leave out: `freeze,loss` or `all,-flush`.
impl FromStr for Faults {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut faults = Self::NONE;
        for name in text.split(',') {
            let (leave_out, name) = match name.strip_prefix('-') {
                Some(name) => (true, name),
                None => (false, name),
            };
            let named = match name {
                "all" => Self::all(),
                "none" => Self::NONE,
                _ => {
                    let known = FaultClass::ALL
                        .into_iter()
                        .find(|class| class.name() == name);
                    let class = known.ok_or_else(|| {
                        format!("there is no fault {name:?}: there are {}", all_names())
                    })?;
                    Self::from_iter([class])
                }
            };
            faults = if leave_out {
                Self(faults.0 & !named.0)
            } else {
                Self(faults.0 | named.0)
            };
        }
        Ok(faults)
    }
}

fn all_names() -> String {
    FaultClass::ALL.map(FaultClass::name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_as_they_are_written() {
        for text in ["none", "all", "freeze,loss", "all,-flush,-loss"] {
            assert_eq!(text.parse::<Faults>().unwrap().to_string(), text);
        }
        let most: Faults = "all,-flush".parse().unwrap();
        assert!(!most.has(FaultClass::Flush) && most.has(FaultClass::Freeze));
        assert!("flood".parse::<Faults>().unwrap_err().contains("\"flood\""));
    }
}
