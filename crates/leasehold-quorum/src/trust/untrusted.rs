use std::fmt;
use std::time::Duration;

use leasehold_types::{
    BootInstant, Error, ErrorKind, MemberFailure, MemberId, MemberSet, exact_span, rough_span,
};

/// Why a member's answers do not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UntrustedReason {
    /// It has not reported its status yet.
    Unknown,
    /// No member has a record yet, and these have not answered.
    NotFormed { missing: Vec<MemberId> },
    /// Its record names another quorum.
    OtherSet {
        theirs: MemberSet,
        generation: u64,
        ours: MemberSet,
    },
    /// Its record names this quorum, and that of another member a quorum that includes it. Clients of that
    /// quorum could hold locks that this one does not know.
    Claimed {
        by: MemberId,
        theirs: Box<MemberSet>,
        generation: u64,
        ours: MemberSet,
    },
    /// Another member knows a later server under its id.
    Replaced { id: MemberId, by: MemberId },
    /// The same server is a member under another id, too.
    SameServer(MemberId),
    /// It cannot be a member.
    Unfit(String),
    /// It may have forgotten leases.
    Forgot {
        what: Forgetting,
        until: Option<BootInstant>,
    },
    /// It may have forgotten a record that others keep for longer than its present data generation.
    Young {
        age: Duration,
        left: Duration,
        until: BootInstant,
    },
    /// It lost its record, and gets a new one only after these members answered.
    LostRecord {
        id: MemberId,
        missing: Vec<MemberId>,
    },
    /// Its clock does not agree with the others, or moved differently from this client's.
    WrongClock {
        what: ClockFault,
        until: BootInstant,
    },
    /// The answer came from other data than the member's known data.
    Changed,
}

/// Times within this span of each other are the same.
const SAME_TIME: Duration = Duration::from_secs(1);

/// How a member came to forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forgetting {
    /// It restarted, and is not known to have kept everything.
    Restarted,
    /// It was a replica, and took over the data of another server.
    WasReplica,
    /// Its record is gone, though the server may not have restarted.
    LostRecord,
    /// It began a new data generation recently, as it or a peer reports.
    NewLife,
}

/// What is wrong with a member's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockFault {
    /// It moved this much further than this client's clock in the same time, or this much less.
    Stepped(Skew),
    /// It is this far from the lower median of the members' clocks.
    Apart(Skew),
}

/// A signed difference between two clocks, in microseconds. Ahead is positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Skew(pub(crate) i64);

impl Skew {
    pub(crate) fn span(self) -> Duration {
        Duration::from_micros(self.0.unsigned_abs())
    }
}

impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.0 < 0 { "back" } else { "ahead" };
        write!(f, "{} {word}", rough_span(self.span()))
    }
}

/// Describes how the configuration of a server differs from that of this client. Names only what differs.
pub(crate) fn difference(theirs: &MemberSet, ours: &MemberSet) -> String {
    let mut parts = Vec::new();
    if theirs.ids != ours.ids {
        let list = |set: &MemberSet| {
            let ids: Vec<_> = set.ids.iter().map(MemberId::as_str).collect();
            ids.join(",")
        };
        parts.push((list(theirs), list(ours)));
    }
    let spans = [
        ("max_ttl", theirs.max_ttl, ours.max_ttl),
        (
            "clock_tolerance",
            theirs.clock_tolerance,
            ours.clock_tolerance,
        ),
    ];
    let differing = spans.into_iter().filter(|(_, theirs, ours)| theirs != ours);
    parts.extend(differing.map(|(name, theirs, ours)| {
        let text = |span| format!("{name} {}", exact_span(span));
        (text(theirs), text(ours))
    }));
    let (their_parts, our_parts): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let differs = format!(
        "it has {}, this client {}",
        their_parts.join(", "),
        our_parts.join(", ")
    );
    match moved(theirs, ours) {
        Some((old, new)) => {
            format!("{differs}; if {new} is {old} at a new address, add ?id={old} to its URL")
        }
        None if share_no_id(theirs, ours) => format!(
            "{differs}; if these are the same servers, name them as the quorum does, or add their ids by ?id="
        ),
        None => differs,
    }
}

/// Whether the sets have equally many members and none in common, such as `localhost` in place of `127.0.0.1`.
fn share_no_id(theirs: &MemberSet, ours: &MemberSet) -> bool {
    theirs.ids.len() == ours.ids.len() && theirs.ids.iter().all(|id| !ours.ids.contains(id))
}

/// Returns the only id that is not in both sets, as each set has it.
fn moved<'a>(theirs: &'a MemberSet, ours: &'a MemberSet) -> Option<(&'a MemberId, &'a MemberId)> {
    let only = |of: &'a MemberSet, other: &MemberSet| {
        let mut others = of.ids.iter().filter(|id| !other.ids.contains(id));
        others.next().filter(|_| others.next().is_none())
    };
    // Sets of different sizes also differ by an addition or removal.
    let is_same_size = theirs.ids.len() == ours.ids.len();
    only(theirs, ours)
        .zip(only(ours, theirs))
        .filter(|_| is_same_size)
}

impl UntrustedReason {
    /// Returns when the member counts again, if that is known.
    pub(crate) fn until(&self) -> Option<BootInstant> {
        match self {
            Self::Forgot { until, .. } => *until,
            Self::Young { until, .. } | Self::WrongClock { until, .. } => Some(*until),
            _ => None,
        }
    }

    /// Whether `known` gave the same reason. Each look at a member moves the times a little.
    pub(crate) fn is_known(&self, known: &Self) -> bool {
        let is_close = match (self.until(), known.until()) {
            (Some(now), Some(then)) => now.since(then).max(then.since(now)) < SAME_TIME,
            (now, then) => now == then,
        };
        match (self, known) {
            (Self::Forgot { what, .. }, Self::Forgot { what: known, .. }) => {
                what == known && is_close
            }
            (Self::Young { .. }, Self::Young { .. })
            | (Self::WrongClock { .. }, Self::WrongClock { .. }) => is_close,
            _ => self == known,
        }
    }

    pub(crate) fn error(&self) -> Error {
        let kind = match self {
            Self::OtherSet { .. } | Self::Claimed { .. } | Self::SameServer(_) | Self::Unfit(_) => {
                ErrorKind::Misconfigured
            }
            // Also a server that was replaced: perhaps it was admitted again, and this client has not heard of it yet.
            _ => ErrorKind::Untrusted,
        };
        Error::new(kind, self.to_string())
    }

    pub(crate) fn failure(&self, id: &MemberId, now: BootInstant) -> MemberFailure {
        let mut failure = MemberFailure::new(id.clone(), self.error());
        failure.eligible_after = self.until().map(|until| until.since(now));
        failure
    }
}

impl fmt::Display for UntrustedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("has not reported its state yet"),
            Self::NotFormed { missing } if missing.is_empty() => {
                f.write_str("the quorum is being initialized")
            }
            Self::NotFormed { missing } => {
                write!(
                    f,
                    "the quorum is not initialized, because {} did not answer",
                    list(missing)
                )
            }
            Self::OtherSet {
                theirs,
                generation,
                ours,
            } => write!(
                f,
                "belongs to another quorum (generation {generation}): {}",
                difference(theirs, ours)
            ),
            Self::Claimed {
                by,
                theirs,
                generation,
                ours,
            } => write!(
                f,
                "belongs to another quorum according to {by} (generation {generation}): {}",
                difference(theirs, ours)
            ),
            Self::Replaced { id, by } => write!(
                f,
                "is no longer a member: {by} knows a later server with the id {}; use the list with that \
                 server, or make this one the member again with `leasehold members readmit {}`",
                id.as_str(),
                id.as_str()
            ),
            Self::SameServer(other) => write!(f, "is the same server as {other}"),
            Self::Unfit(why) => write!(f, "cannot be a member: {why}"),
            Self::Forgot { what, .. } => f.write_str(match what {
                Forgetting::Restarted => "restarted, and may have lost locks",
                Forgetting::WasReplica => "was a replica, and may have lost locks",
                Forgetting::LostRecord => "lost its data",
                Forgetting::NewLife => "it restarted, lost data, or is new",
            }),
            Self::Young { age, left, .. } => write!(
                f,
                "lost its data, joined or became durable {} ago; for {} more it cannot \
                 say that a result does not exist",
                rough_span(*age),
                rough_span(*left)
            ),
            Self::LostRecord { id, missing } => write!(
                f,
                "has no record of this quorum: it lost its data, or never was a member; it gets a \
                 record when {} answers, or by `leasehold members readmit {}`",
                list(missing),
                id.as_str()
            ),
            Self::WrongClock { what, .. } => match what {
                ClockFault::Stepped(by) => write!(f, "its clock was stepped {by}"),
                ClockFault::Apart(by) => {
                    write!(f, "its clock is {by} of the other servers")
                }
            },
            Self::Changed => {
                f.write_str("restarted or changed its member record while it was asked")
            }
        }
    }
}

fn list(ids: &[MemberId]) -> String {
    let ids: Vec<_> = ids.iter().map(MemberId::to_string).collect();
    ids.join(", ")
}
