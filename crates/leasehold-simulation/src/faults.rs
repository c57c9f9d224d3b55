use std::fmt;
use std::str::FromStr;

macro_rules! fault_kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal,)*) => {
        /// A kind of fault that the fault injector causes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum FaultKind {
            $($(#[$doc])* $kind,)*
        }

        impl FaultKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Returns the name on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

fault_kinds! {
    /// A server stops for a while, and then runs the requests that arrived.
    Pause "pause",
    /// A server restarts with its data.
    Restart "restart",
    /// A server restarts without data.
    RestartEmpty "restart-empty",
    /// A server runs `FLUSHALL`.
    Flush "flush",
    /// A server's clock is stepped.
    ClockStep "clock-step",
    /// All clocks run at rates that differ by up to 4 %.
    Drift "drift",
    /// Clients' wall clocks are wrong by minutes.
    WildClock "wild-clock",
    /// A client and a server cannot reach each other for a while.
    Partition "partition",
    /// A connection breaks. The server still runs some of what was sent, perhaps late.
    Cut "cut",
    /// A connection no longer delivers anything, and neither end learns of it.
    HalfOpen "half-open",
    /// A connection delays everything. Its client gives it up and connects again, and what it sent before
    /// arrives any time later. `CLIENT KILL` does not end the connection.
    LateBytes "late-bytes",
    /// A connection is slow for a while.
    Slow "slow",
    /// A client is killed. Its system closes its connections.
    Kill "kill",
    /// A client's machine loses power. Its connections stay open at the servers.
    PowerLoss "power-loss",
    /// A client stops for a while, as by `SIGSTOP`.
    Stop "stop",
    /// A client's machine is suspended for a while, and its clocks with it.
    Freeze "freeze",
}

/// A set of fault kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults(u32);

impl Faults {
    /// No fault.
    pub const NONE: Self = Self(0);

    /// Returns all faults.
    pub fn all() -> Self {
        FaultKind::ALL.iter().copied().collect()
    }

    /// Returns whether `kind` is in the set.
    pub fn has(self, kind: FaultKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// Returns the set without `kind`.
    #[must_use]
    pub fn without(self, kind: FaultKind) -> Self {
        Self(self.0 & !(1 << kind as u8))
    }

    /// Returns the kinds in the set.
    pub fn iter(self) -> impl Iterator<Item = FaultKind> {
        let all = FaultKind::ALL.iter().copied();
        all.filter(move |kind| self.has(*kind))
    }
}

impl FromIterator<FaultKind> for Faults {
    fn from_iter<I: IntoIterator<Item = FaultKind>>(kinds: I) -> Self {
        Self(
            kinds
                .into_iter()
                .fold(0, |bits, kind| bits | 1 << kind as u8),
        )
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(FaultKind::name).collect();
        f.write_str(if names.is_empty() { "none" } else { "" })?;
        f.write_str(&names.join(","))
    }
}

/// Reads `none`, `all`, or names. A name that starts with `-` is left out: `all,-flush`.
impl FromStr for Faults {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut faults = Self::NONE;
        for name in text.split(',') {
            let (leaves_out, name) = match name.strip_prefix('-') {
                Some(name) => (true, name),
                None => (false, name),
            };
            let named = match name {
                "all" => Self::all(),
                "none" => Self::NONE,
                _ => {
                    let known = Self::all().iter().find(|kind| kind.name() == name);
                    let kind = known.ok_or_else(|| {
                        let all: Vec<_> = Self::all().iter().map(FaultKind::name).collect();
                        format!("unknown fault {name:?}; the faults are {}", all.join(", "))
                    })?;
                    Self::from_iter([kind])
                }
            };
            faults = Self(if leaves_out {
                faults.0 & !named.0
            } else {
                faults.0 | named.0
            });
        }
        Ok(faults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_as_written() {
        for text in ["none", "cut,kill"] {
            assert_eq!(text.parse::<Faults>().unwrap().to_string(), text);
        }
        let most: Faults = "all,-flush".parse().unwrap();
        assert!(!most.has(FaultKind::Flush) && most.has(FaultKind::Cut));
        assert!("flood".parse::<Faults>().unwrap_err().contains("\"flood\""));
    }
}
