use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::MemberId;
use crate::entropy::Entropy;
use crate::exact_span;
use crate::instants::WallTime;

/// The configuration of a quorum: its members, and the limits that all its clients agree on. Clients
/// write it to the [`MemberRecord`] of every member, so that clients with different configurations notice it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberSet {
    /// The members, sorted.
    pub ids: Vec<MemberId>,
    /// The longest TTL of any lease. A member that may have forgotten leases must wait for this long.
    pub max_ttl: Duration,
    /// The largest difference allowed between the members' clocks.
    pub clock_tolerance: Duration,
}

impl MemberSet {
    /// Returns the set of `ids`, in any order, with these limits. Both are kept in whole milliseconds.
    pub fn new(
        ids: impl IntoIterator<Item = MemberId>,
        max_ttl: Duration,
        clock_tolerance: Duration,
    ) -> Self {
        let whole = |span: Duration| Duration::from_millis(span.as_millis() as u64);
        let mut ids: Vec<_> = ids.into_iter().collect();
        ids.sort();
        Self {
            ids,
            max_ttl: whole(max_ttl),
            clock_tolerance: whole(clock_tolerance),
        }
    }

    /// Returns whether each majority of one set has a member in common with each majority of the other.
    pub fn always_meets(&self, other: &Self) -> bool {
        let joining = other.ids.iter().filter(|id| !self.ids.contains(id));
        let all = self.ids.len() + joining.count();
        let majority = |set: &Self| set.ids.len() / 2 + 1;
        majority(self) + majority(other) > all
    }
}

impl fmt::Display for MemberSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.ids.iter().map(MemberId::as_str).collect();
        write!(
            f,
            "{} (max_ttl {}, clock_tolerance {})",
            ids.join(","),
            exact_span(self.max_ttl),
            exact_span(self.clock_tolerance)
        )
    }
}

impl fmt::Debug for MemberSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemberSet({self})")
    }
}

/// The name of a period in which a member forgets nothing. A member that may have lost leases or
/// counters begins a new data generation. A member that restarts with all its data continues the old one.
///
/// The names of one member increase. The first eight digits name an admission: a server without a record was
/// admitted as this member, so an earlier server of the id no longer counts. The next seven name a period of that
/// server. The last digit counts the names of one period. A client gives the period its next name
/// when the member is no longer durable. If the member later returns with an earlier name of its admission, it has
/// lost what happened since.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataGeneration(u64);

impl DataGeneration {
    /// The digit that counts the names of one period.
    const NAMES: u64 = 0xf;

    /// The bits of a period within an admission.
    const PERIODS: u64 = 0xffff_fff0;

    /// The lowest bit of an admission.
    const ADMISSION: u64 = 1 << 32;

    /// Draws the name of the first data generation of a member. Later ones have room above it.
    pub fn random(entropy: &dyn Entropy) -> Self {
        Self((entropy.next_u64() >> 1) & !Self::NAMES)
    }

    /// Draws the name of the data generation of a server that is admitted as a member. `known` are all names of that
    /// member that any member knows.
    pub fn admitted(known: impl IntoIterator<Item = Self>, entropy: &dyn Entropy) -> Self {
        let Some(greatest) = known.into_iter().max() else {
            return Self::random(entropy);
        };
        let admission = greatest.0 / Self::ADMISSION;
        let room = u64::from(u32::MAX) - admission;
        // After a thousand admissions, half of the numbers are left.
        let step = 1 + entropy.next_u64() % (room >> 10).max(1);
        let admission = admission.saturating_add(step).min(u64::from(u32::MAX));
        let period = (entropy.next_u64() & Self::PERIODS) >> 1;
        Self((admission * Self::ADMISSION + period) & !Self::NAMES)
    }

    /// Draws the name of the next data generation of the same server, which may have lost data.
    /// `known` are all names of that member that any member knows. After the last name of an admission, the
    /// server is admitted again.
    pub fn restarted(self, known: impl IntoIterator<Item = Self>, entropy: &dyn Entropy) -> Self {
        let known: Vec<Self> = known.into_iter().collect();
        let own = known.iter().filter(|it| it.is_same_admission(self));
        let greatest = own.copied().max().map_or(self, |it| it.max(self));
        let step = (1 + entropy.next_u64() % 4_096) * (Self::NAMES + 1);
        let next = Self((greatest.0 & !Self::NAMES) + step);
        match next.is_same_admission(self) {
            true => next,
            false => Self::admitted(known.into_iter().chain([self]), entropy),
        }
    }

    fn is_same_admission(self, other: Self) -> bool {
        self.0 / Self::ADMISSION == other.0 / Self::ADMISSION
    }

    /// Returns whether a server was admitted as the member after the one with `earlier`.
    pub fn was_admitted_after(self, earlier: Self) -> bool {
        self.0 / Self::ADMISSION > earlier.0 / Self::ADMISSION
    }

    /// Returns the next name of the same period; `None` after the last of its sixteen names.
    pub fn renamed(self) -> Option<Self> {
        let is_last = self.0 & Self::NAMES == Self::NAMES;
        (!is_last).then(|| Self(self.0 + 1))
    }

    /// Returns whether this names the same period as `earlier`, by the same name or by a later one.
    pub fn continues(self, earlier: Self) -> bool {
        self.0 & !Self::NAMES == earlier.0 & !Self::NAMES && self.0 >= earlier.0
    }

    /// Reads what [`Display`](fmt::Display) wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(text, 16).ok()?;
        hex.then_some(Self(number))
    }
}

impl fmt::Display for DataGeneration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for DataGeneration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataGeneration({self})")
    }
}

/// Identifies one run of a server; drawn anew at each start.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(Arc<str>);

impl RunId {
    /// Returns the run called `text`.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().into())
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunId({self})")
    }
}

/// Identifies the version of a member record. Every answer contains it. It changes with the member's
/// data generation and with the configuration.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Epoch(Arc<str>);

impl Epoch {
    /// Returns the epoch of a member record with this data generation and generation.
    pub fn of(data_generation: DataGeneration, generation: u64) -> Self {
        Self(format!("{data_generation}.{generation}").into())
    }

    /// Returns the epoch as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Epoch({})", self.0)
    }
}

/// What a member knows about its set, and about the other members.
///
/// Clients write it. The member only stores it, and may lose it together with its other data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRecord {
    /// The set that the member belongs to.
    pub set: MemberSet,
    /// The number of the [configuration](Self::configuration), plus 2³² for each admission of another member since, so
    /// that each admission changes the epoch.
    pub generation: u64,
    /// When the set was last changed, by the member's clock.
    pub changed: WallTime,
    /// The member's data generation.
    pub data_generation: DataGeneration,
    /// When that data generation began, by the member's clock.
    pub since: WallTime,
    /// The run of the server in which the member record was last confirmed.
    pub run: RunId,
    /// Whether the server was durable whenever a client looked during that run.
    pub durable: bool,
    /// The data generations of the other members that this member knows of.
    pub observations: BTreeMap<MemberId, Observation>,
}

impl MemberRecord {
    /// Returns the data generation of the member `id` that this member last saw.
    pub fn seen(&self, id: &MemberId) -> Option<DataGeneration> {
        self.observations.get(id).map(|it| it.data_generation)
    }

    /// Returns whether `observer` has seen a later name of this record's data generation, or a later data generation of the
    /// same server. The record belongs to the member `id`. If so, the member came back with older data.
    pub fn is_older_than_known_to(&self, observer: &Self, id: &MemberId) -> bool {
        let own = self.data_generation;
        let known = observer.seen(id);
        known.is_some_and(|known| known > own && known.is_same_admission(own))
    }

    /// Returns whether `observer` has seen a later server under the id of this record's member: another one, or the same
    /// one after it lost its record.
    pub fn was_replaced_according_to(&self, observer: &Self, id: &MemberId) -> bool {
        let known = observer.seen(id);
        known.is_some_and(|known| known.was_admitted_after(self.data_generation))
    }

    /// Returns the number of the configuration. It counts the changes of the set, from 1. It is 0 while the quorum is
    /// being initialized, when no member has a vote. It is also 0 on the new member record of a server that had none, until
    /// a majority of the others, or all, know the server.
    pub fn configuration(&self) -> u64 {
        configuration_of(self.generation)
    }

    /// Returns the latest of some [generations](Self::generation): that of the latest configuration, with the most admissions.
    pub fn latest(generations: impl IntoIterator<Item = u64>) -> Option<u64> {
        let key = |generation: &u64| (configuration_of(*generation), *generation);
        generations.into_iter().max_by_key(key)
    }

    /// Returns whether the member has been admitted to an initialized quorum.
    pub fn is_formed(&self) -> bool {
        self.configuration() > 0
    }

    /// Returns whether, by this member record, the member `id` belongs to a set that could grant a lock at the
    /// same time as `ours`, which contains it too. Two sets whose majorities need not meet must not share
    /// a member. A member record older than `configuration`, that of `ours`, does not count: its member may
    /// have missed a change of the set.
    pub fn claims(&self, id: &MemberId, ours: &MemberSet, configuration: u64) -> bool {
        self.is_formed()
            && self.configuration() >= configuration
            && self.set.ids.contains(id)
            && !self.set.always_meets(ours)
    }

    /// Returns the member record's epoch.
    pub fn epoch(&self) -> Epoch {
        Epoch::of(self.data_generation, self.generation)
    }
}

/// A member's observation of another member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The data generation in which the member was last seen.
    pub data_generation: DataGeneration,
    /// When the observer first heard of that data generation, by the observer's clock.
    pub at: WallTime,
    /// Whether the observer knew an earlier data generation. If so, this data generation began shortly before `at`.
    pub changed: bool,
}

fn configuration_of(generation: u64) -> u64 {
    generation & u64::from(u32::MAX)
}

impl Observation {
    /// Returns what an observer that knew `known` records when it hears of `data_generation` at `at`; `None` if that
    /// is nothing new. A later name of a known data generation keeps the recorded time. An earlier data generation is
    /// never recorded again.
    pub fn noted(
        known: Option<Self>,
        data_generation: DataGeneration,
        at: WallTime,
    ) -> Option<Self> {
        match known {
            Some(known) if known.data_generation >= data_generation => None,
            Some(known) if data_generation.continues(known.data_generation) => Some(Self {
                data_generation,
                ..known
            }),
            _ => Some(Self {
                data_generation,
                at,
                changed: known.is_some(),
            }),
        }
    }
}

/// A change to a member's member record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRecordEdit {
    /// The member record's epoch as the client read it. The member writes nothing if its epoch differs. `None` if
    /// there is no member record.
    pub expected: Option<Epoch>,
    /// The set, with its generation below. If that generation differs from the one on the member record, the
    /// member writes its own clock to [`MemberRecord::changed`].
    pub set: MemberSet,
    /// See [`MemberRecord::generation`].
    pub generation: u64,
    /// The run in which the client writes this.
    pub run: RunId,
    /// See [`MemberRecord::durable`].
    pub durable: bool,
    /// The member's current data generation.
    pub data_generation: DataGeneration,
    /// How long that data generation has lasted. The member sets [`MemberRecord::since`] to its own clock minus this. `None`
    /// leaves it unchanged.
    pub age: Option<Duration>,
    /// Data generations of other members. The member records when it first heard of each.
    pub seen: Vec<(MemberId, DataGeneration)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::tests::RandomEntropy;

    #[test]
    fn member_order_does_not_matter_for_equality() {
        let set = |ids: &[&str]| {
            let ids = ids.iter().map(|id| MemberId::new(*id));
            MemberSet::new(ids, Duration::from_secs(60), Duration::from_millis(250))
        };
        assert_eq!(set(&["b", "a"]), set(&["a", "b"]));
        assert_ne!(set(&["a", "b"]), set(&["a", "b", "c"]));
        assert_eq!(
            set(&["b", "a"]).to_string(),
            "a,b (max_ttl 1m, clock_tolerance 250ms)"
        );
    }

    #[test]
    fn later_name_continues_only_its_own_span() {
        let drawn = DataGeneration::random(&RandomEntropy);
        let [data_generation, next, last, other] = [
            "0123456789abcde0",
            "0123456789abcde1",
            "0123456789abcdef",
            "0123456789abcdf0",
        ]
        .map(|text| DataGeneration::parse(text).unwrap());
        assert!(drawn.to_string().ends_with('0'));
        assert_eq!(
            (data_generation.renamed(), last.renamed()),
            (Some(next), None)
        );
        assert!(
            data_generation.continues(data_generation)
                && next.continues(data_generation)
                && last.continues(next)
        );
        assert!(
            !data_generation.continues(next)
                && !other.continues(data_generation)
                && !data_generation.continues(other)
        );
    }

    #[test]
    fn data_generation_is_read_as_written() {
        let data_generation = DataGeneration::random(&RandomEntropy);
        assert_eq!(
            DataGeneration::parse(&data_generation.to_string()),
            Some(data_generation)
        );
        for wrong in ["", "12", "+123456789abcdef", "123456789abcdefg"] {
            assert_eq!(DataGeneration::parse(wrong), None);
        }
    }
}
