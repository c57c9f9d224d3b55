use super::history::{Entry, History, Hold};

/// What the judges found in a history. They rely on the instants at which things happened, and not on what
/// the lock or the record's guardian reported about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// How often the lock was granted.
    pub grants: usize,
    /// Pairs of workers that were inside at the same real time, from the grant to the last write.
    pub overlaps: usize,
    /// Updates that the record without fences lost.
    pub plain_updates_lost: usize,
    /// Refused requests whose fence was too old by then.
    pub stale_refused: usize,
    /// Pairs of guards that both claimed to be valid at the same instant. There must be none.
    pub valid_overlaps: Vec<String>,
    /// Later grants whose fence is not greater. There must be none.
    pub fence_disorders: Vec<String>,
    /// Accepted requests whose fence was too old. There must be none.
    pub stale_accepted: Vec<String>,
    /// Updates that the fenced record lost. There must be none.
    pub updates_lost: Vec<String>,
}

impl Findings {
    /// Judges a history.
    pub fn of(history: &History) -> Self {
        let mut found = Self {
            grants: history.holds.len(),
            overlaps: overlapping(&history.holds, |hold| hold.left.or(hold.valid_until)).len(),
            fence_disorders: fence_disorders(&history.holds),
            ..Self::default()
        };
        for (first, second) in overlapping(&history.holds, |hold| hold.valid_until) {
            found.valid_overlaps.push(format!(
                "fence {} of worker {} and fence {} of worker {} were both valid at {:?}",
                first.fence, first.worker, second.fence, second.worker, second.granted
            ));
        }
        found.judge_entries(&history.entries);
        found
    }

    /// Describes what must never happen: each kind with its number and its first case. Empty if there was
    /// no violation.
    pub fn violations(&self) -> Vec<String> {
        let kinds = [
            ("two valid guards", &self.valid_overlaps),
            ("fence order", &self.fence_disorders),
            ("stale request let in", &self.stale_accepted),
            ("lost update", &self.updates_lost),
        ];
        let told = kinds.into_iter().filter_map(|(kind, found)| {
            let first = found.first()?;
            Some(format!("{kind}, {} times: {first}", found.len()))
        });
        told.collect()
    }

    /// Adds the findings of another history.
    pub fn add(&mut self, other: Self) {
        self.grants += other.grants;
        self.overlaps += other.overlaps;
        self.plain_updates_lost += other.plain_updates_lost;
        self.stale_refused += other.stale_refused;
        self.valid_overlaps.extend(other.valid_overlaps);
        self.fence_disorders.extend(other.fence_disorders);
        self.stale_accepted.extend(other.stale_accepted);
        self.updates_lost.extend(other.updates_lost);
    }

    fn judge_entries(&mut self, entries: &[Entry]) {
        let mut greatest = 0;
        let (mut record, mut plain) = (0, 0);
        for entry in entries {
            let (fence, accepted) = match *entry {
                Entry::Read { fence, accepted } => (fence, accepted),
                Entry::Write {
                    fence,
                    base,
                    value,
                    accepted,
                } => {
                    if accepted && base != record {
                        self.updates_lost.push(format!(
                            "fence {fence} wrote {value} over {record}, having read {base}"
                        ));
                    }
                    record = if accepted { value } else { record };
                    (fence, accepted)
                }
                Entry::PlainWrite { base, value } => {
                    self.plain_updates_lost += usize::from(base != plain);
                    plain = value;
                    continue;
                }
            };
            if accepted && fence < greatest {
                let text = format!("fence {fence} after fence {greatest}");
                self.stale_accepted.push(text);
            }
            self.stale_refused += usize::from(!accepted);
            if accepted {
                greatest = greatest.max(fence);
            }
        }
    }
}

/// Returns the pairs of holds that overlap, each from its grant to its `end`. A hold without an end is left
/// out. The second of a pair was granted later.
fn overlapping(
    holds: &[Hold],
    end: impl Fn(&Hold) -> Option<leasehold::clock::BootInstant>,
) -> Vec<(Hold, Hold)> {
    let mut spans: Vec<_> = holds
        .iter()
        .filter_map(|hold| Some((*hold, end(hold)?)))
        .collect();
    spans.sort_by_key(|(hold, _)| hold.granted);
    let mut open: Vec<(Hold, leasehold::clock::BootInstant)> = Vec::new();
    let mut pairs = Vec::new();
    for (hold, until) in spans {
        open.retain(|(_, end)| *end >= hold.granted);
        pairs.extend(open.iter().map(|(earlier, _)| (*earlier, hold)));
        open.push((hold, until));
    }
    pairs
}

/// Returns the pairs of grants whose later one has no greater fence. A grant is later if it was requested
/// after the other one was granted, or was granted after the other one was last valid.
fn fence_disorders(holds: &[Hold]) -> Vec<String> {
    let mut known: Vec<_> = holds
        .iter()
        .map(|hold| (hold.granted, hold.fence))
        .collect();
    known.sort_unstable();
    let mut greatest = 0;
    for (_, fence) in &mut known {
        greatest = greatest.max(*fence);
        *fence = greatest;
    }
    let before = |known: &[(_, u64)], instant| {
        let count = known.partition_point(|(at, _)| *at < instant);
        count.checked_sub(1).map(|last| known[last].1)
    };
    let mut disorders = Vec::new();
    for hold in holds {
        if let Some(fence) = before(&known, hold.asked)
            && fence >= hold.fence
        {
            let text = format!("{fence} was granted before {} was asked for", hold.fence);
            disorders.push(text);
        }
    }
    let mut valid: Vec<_> = holds
        .iter()
        .filter(|hold| hold.valid_until.is_some())
        .collect();
    valid.sort_by_key(|hold| hold.granted);
    for pair in valid.windows(2) {
        if pair[0].fence >= pair[1].fence {
            let (first, second) = (pair[0].fence, pair[1].fence);
            disorders.push(format!("{first} was valid before {second} was"));
        }
    }
    disorders
}

#[cfg(test)]
mod tests {
    use leasehold::clock::BootInstant;

    use super::*;

    fn hold(fence: u64, asked: u64, granted: u64, valid_until: u64, left: u64) -> Hold {
        Hold {
            worker: 0,
            fence,
            asked: BootInstant::from_nanos(asked),
            granted: BootInstant::from_nanos(granted),
            valid_until: (valid_until > 0).then(|| BootInstant::from_nanos(valid_until)),
            left: Some(BootInstant::from_nanos(left)),
        }
    }

    fn found(holds: &[Hold], entries: &[Entry]) -> Findings {
        Findings::of(&History {
            holds: holds.to_vec(),
            entries: entries.to_vec(),
            ..History::default()
        })
    }

    fn write(fence: u64, base: u64, accepted: bool) -> Entry {
        Entry::Write {
            fence,
            base,
            value: base + 1,
            accepted,
        }
    }

    #[test]
    fn one_after_the_other_is_well() {
        let found = found(
            &[hold(7, 0, 10, 15, 20), hold(9, 5, 21, 25, 30)],
            &[write(7, 0, true), write(9, 1, true)],
        );
        assert_eq!(found.violations(), [""; 0]);
        assert_eq!((found.grants, found.overlaps), (2, 0));
    }

    #[test]
    fn overstaying_holder_is_no_double_grant() {
        let found = found(&[hold(7, 0, 10, 15, 50), hold(9, 5, 21, 25, 30)], &[]);
        assert_eq!(found.overlaps, 1);
        assert_eq!(found.violations(), [""; 0]);
    }

    #[test]
    fn nested_double_grant_is_reported() {
        let holds = [
            hold(7, 0, 10, 90, 95),
            hold(8, 0, 20, 30, 31),
            hold(9, 0, 40, 50, 51),
        ];
        let found = found(&holds, &[]);
        assert_eq!(found.valid_overlaps.len(), 2, "{:?}", found.valid_overlaps);
    }

    #[test]
    fn repeated_or_smaller_fence_is_reported() {
        let asked_later = [hold(9, 0, 10, 15, 20), hold(7, 11, 21, 0, 30)];
        assert_eq!(found(&asked_later, &[]).fence_disorders.len(), 1);
        let valid_later = [hold(9, 0, 10, 15, 20), hold(7, 5, 21, 25, 30)];
        assert_eq!(found(&valid_later, &[]).fence_disorders.len(), 1);
        let twice = [hold(9, 0, 10, 15, 20), hold(9, 5, 21, 25, 30)];
        assert_eq!(found(&twice, &[]).fence_disorders.len(), 1);
        // The order of these two grants is unknown: the first one was never valid.
        let unordered = [hold(9, 0, 10, 0, 20), hold(7, 5, 21, 25, 30)];
        assert_eq!(found(&unordered, &[]).fence_disorders, [""; 0]);
    }

    #[test]
    fn stale_writes_are_counted_by_fence() {
        let read = |fence, accepted| Entry::Read { fence, accepted };
        let refused = found(&[], &[read(9, true), write(7, 0, false)]);
        assert_eq!(refused.stale_refused, 1);
        assert_eq!(refused.violations(), [""; 0]);
        let let_in = found(&[], &[read(9, true), write(7, 0, true)]);
        assert_eq!(let_in.stale_accepted.len(), 1);
    }

    #[test]
    fn an_update_from_an_old_value_is_lost() {
        let lost = found(&[], &[write(7, 0, true), write(9, 0, true)]);
        assert_eq!(lost.updates_lost.len(), 1);
        let plain = |base| Entry::PlainWrite {
            base,
            value: base + 1,
        };
        let found = found(&[], &[plain(0), plain(0), plain(1)]);
        assert_eq!(found.plain_updates_lost, 1);
        assert_eq!(found.violations(), [""; 0]);
    }
}
