use std::time::Duration;

use leasehold::clock::{Clock, SystemClock};
use leasehold_redis::TrustRules;
use leasehold_testkit::faults::Findings;

use crate::cluster::Cluster;
use crate::fault::Fault;
use crate::worker::Way;

/// The results of one fault.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) fault: Fault,
    pub(crate) rounds: usize,
    pub(crate) lasted: Duration,
    pub(crate) found: Findings,
    /// The longest time in which the lock was free while a majority could have granted it.
    pub(crate) longest_wait: Duration,
    /// How many times a worker did not get the lock.
    pub(crate) refusals: usize,
    /// The reason for the last of these refusals.
    pub(crate) last_refusal: String,
}

impl Row {
    /// Causes `fault` again and again for `span`, at least once. The workers trust members and enter in this
    /// `manner`.
    pub(crate) fn of(fault: Fault, manner: (TrustRules, Way), span: Duration, seed: u64) -> Self {
        if !fault.needs_a_new_cluster() {
            return Self::on_one_cluster(fault, manner, span, seed);
        }
        let end = SystemClock.now() + span;
        let round = |seed| Self::on_one_cluster(fault, manner, Duration::ZERO, seed);
        let mut row = round(seed);
        while SystemClock.now() < end {
            row.add(round(seed.wrapping_add(row.rounds as u64)));
        }
        row
    }

    /// Starts everything anew, and then causes `fault` again and again for `span`, at least once.
    fn on_one_cluster(fault: Fault, manner: (TrustRules, Way), span: Duration, seed: u64) -> Self {
        let mut cluster = Cluster::start(&fault.servers(), manner, seed);
        let begun = SystemClock.now();
        let mut rounds = 0;
        while rounds == 0 || SystemClock.now() < begun + span {
            fault.strike(&mut cluster);
            rounds += 1;
        }
        cluster.await_grants(1);
        let ended = SystemClock.now();
        let (history, outages) = cluster.finish();
        let held = history.holds.iter();
        let held: Vec<_> = held
            .map(|hold| (hold.granted, hold.valid_until.unwrap_or(hold.granted)))
            .collect();
        Self {
            fault,
            rounds,
            lasted: ended.since(begun),
            found: Findings::of(&history),
            longest_wait: outages.longest_wait(&held, begun, ended),
            refusals: history.refusals.len(),
            last_refusal: history
                .refusals
                .last()
                .map_or(String::new(), |last| last.1.clone()),
        }
    }

    /// Adds the results of another run with the same fault.
    pub(crate) fn add(&mut self, other: Self) {
        self.rounds += other.rounds;
        self.lasted += other.lasted;
        self.found.add(other.found);
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.refusals += other.refusals;
        if other.refusals > 0 {
            self.last_refusal = other.last_refusal;
        }
    }

    /// Returns what happened that must never happen; empty if there was nothing.
    pub(crate) fn failures(&self) -> Vec<String> {
        let mut failures = self.found.violations();
        if self.fault == Fault::PauseHolder && self.found.overlaps == 0 {
            failures.push("a holder was paused, and no overlap was seen: who looked?".into());
        }
        failures
    }

    pub(crate) fn summary(&self) -> String {
        format!(
            "{}: {} rounds in {:.1?}, {} grants, {} overlaps, {} updates lost without fences, {} \
             stale requests refused, longest wait {:.2?}, {} refusals, the last: {}",
            self.fault.name(),
            self.rounds,
            self.lasted,
            self.found.grants,
            self.found.overlaps,
            self.found.plain_updates_lost,
            self.found.stale_refused,
            self.longest_wait,
            self.refusals,
            self.last_refusal,
        )
    }
}
