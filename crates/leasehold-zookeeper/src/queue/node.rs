use std::fmt;

use leasehold::Mode;
use leasehold::look::Owner;
use leasehold::store::Permits;

/// One node in the folder of a lock: a holder, a waiter, or a lock that was broken and is still closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: String,
    /// The number that the server gave it. Nodes with smaller numbers were created earlier.
    pub(crate) number: u32,
    pub(crate) kind: Kind,
    /// `None` if another library wrote it.
    pub(crate) owner: Option<Owner>,
}

/// What a node asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Exclusive,
    /// Whether it goes ahead of the queue.
    Shared {
        barges: bool,
    },
    Permit {
        of: Permits,
        barges: bool,
    },
    /// A broken lease: it excludes the same requests as before until this time in milliseconds since 1970, by the clock of the
    /// leader. Then anyone may remove it.
    Closed {
        mode: Mode,
        until: i64,
    },
}

impl Kind {
    pub(crate) fn of(mode: Mode, barges: bool) -> Self {
        match mode {
            Mode::Exclusive => Self::Exclusive,
            Mode::Shared => Self::Shared { barges },
            Mode::Permit(of) => Self::Permit { of, barges },
        }
    }

    pub(crate) fn mode(self) -> Mode {
        match self {
            Self::Exclusive => Mode::Exclusive,
            Self::Closed { mode, .. } => mode,
            Self::Shared { .. } => Mode::Shared,
            Self::Permit { of, .. } => Mode::Permit(of),
        }
    }

    /// Whether it holds the lock, wherever in the queue it is.
    pub(crate) fn barges(self) -> bool {
        match self {
            Self::Exclusive => false,
            Self::Shared { barges } | Self::Permit { barges, .. } => barges,
            Self::Closed { .. } => true,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (plain, barges) = match text.strip_suffix('b') {
            Some(plain) => (plain, true),
            None => (text, false),
        };
        Some(match plain {
            "w" if !barges => Self::Exclusive,
            "r" => Self::Shared { barges },
            _ => match plain.split_at_checked(1)? {
                ("p", count) => Self::Permit {
                    of: Permits::new(count.parse().ok()?).ok()?,
                    barges,
                },
                ("x", until) if !barges => {
                    let (mode, until) = match until.split_once('_') {
                        Some((mode, until)) => (Self::parse(mode)?.mode(), until),
                        None => (Mode::Exclusive, until),
                    };
                    let until = until.parse().ok()?;
                    Self::Closed { mode, until }
                }
                _ => return None,
            },
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exclusive => f.write_str("w")?,
            Self::Shared { .. } => f.write_str("r")?,
            Self::Permit { of, .. } => write!(f, "p{of}")?,
            Self::Closed {
                mode: Mode::Exclusive,
                until,
            } => return write!(f, "x{until}"),
            Self::Closed { mode, until } => {
                return write!(f, "x{}_{until}", Self::of(*mode, false));
            }
        }
        f.write_str(if self.barges() { "b" } else { "" })
    }
}

/// The text between the author of a node and its number, in names of Curator's mutex too.
const LOCK: &str = "-lock-";

/// The same in names of kazoo's lock. It sees ours if its option says so, which its name does not show.
const KAZOO: &str = "__lock__";

/// The digits of a number, as the server writes them.
const DIGITS: usize = 10;

/// A node that is no lock node of this form. Its library would not see ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Foreign(pub(crate) String);

impl Node {
    /// Returns the beginning of a name. The server appends the number.
    pub(crate) fn prefix(owner: Owner, kind: Kind) -> String {
        format!("{owner}-{kind}{LOCK}")
    }

    /// Returns the name of the node that takes the place of this one.
    pub(crate) fn replaced_by(&self, owner: Owner, kind: Kind) -> String {
        format!("{}{:010}", Self::prefix(owner, kind), self.number)
    }

    /// Reads a name; `None` for what does not belong to a queue.
    pub(crate) fn parse(name: &str) -> Result<Option<Self>, Foreign> {
        let Some((author, number)) = name
            .len()
            .checked_sub(DIGITS)
            .and_then(|split| name.split_at_checked(split))
            .and_then(|(author, digits)| Some((author, number(digits)?)))
        else {
            return Ok(None);
        };
        let plain = author.strip_suffix(LOCK);
        if plain.is_none() && !author.ends_with(KAZOO) {
            return Err(Foreign(name.to_owned()));
        }
        let ours = plain
            .and_then(|author| author.rsplit_once('-'))
            .and_then(|(owner, kind)| Some((owner.parse().ok()?, Kind::parse(kind)?)));
        let (owner, kind) = match ours {
            Some((owner, kind)) => (Some(owner), kind),
            None => (None, Kind::Exclusive),
        };
        let name = name.to_owned();
        Ok(Some(Self {
            name,
            number,
            kind,
            owner,
        }))
    }
}

fn number(digits: &str) -> Option<u32> {
    let all = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| all)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn owner(number: u128) -> Owner {
        Owner::from_bits((7, number))
    }

    fn closed(mode: Mode) -> Kind {
        let until = 1_795_000_000_123;
        Kind::Closed { mode, until }
    }

    #[test]
    fn names_are_read_as_they_were_written() {
        let of = Permits::new(12).unwrap();
        for kind in [
            Kind::Exclusive,
            Kind::Shared { barges: false },
            Kind::Shared { barges: true },
            Kind::Permit { of, barges: false },
            Kind::Permit { of, barges: true },
            closed(Mode::Exclusive),
            closed(Mode::Shared),
            closed(Mode::Permit(of)),
        ] {
            let name = format!("{}0000000042", Node::prefix(owner(1), kind));
            let node = Node::parse(&name).unwrap().unwrap();
            assert_eq!((node.kind, node.number), (kind, 42), "{name}");
            assert_eq!(node.owner, Some(owner(1)));
            assert_eq!(node.replaced_by(owner(1), kind), name);
        }
    }

    #[test]
    fn locks_of_other_libraries_are_exclusive() {
        for name in [
            "_c_7c4b9a4e-0b5e-4f0e-9d3a-1a2b3c4d5e6f-lock-0000000003",
            "b3b2c7__lock__0000000003",
        ] {
            let node = Node::parse(name).unwrap().unwrap();
            let found = (node.kind, node.number, node.owner);
            assert_eq!(found, (Kind::Exclusive, 3, None));
        }
        for other in [
            "b3b2c7__rlock__0000000001",
            "_c_7c4b-__READ__0000000002",
            "_c_7c4b-lease-0000000002",
        ] {
            assert_eq!(Node::parse(other), Err(Foreign(other.to_owned())));
        }
        for none in ["", "leases", "locks", "x-lock-", "x-lock--000000001"] {
            assert_eq!(Node::parse(none), Ok(None), "{none}");
        }
    }
}
