use std::time::Duration;

use leasehold::Mode;
use leasehold::store::Permits;

use crate::faults::{FaultKind, Faults};
use crate::rng::SimRng;
use crate::time::{MILLIS, SECOND, Time};

/// The properties of a run. The seed and the allowed faults determine them.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) servers: usize,
    pub(crate) clients: usize,
    /// How many programs each client runs.
    pub(crate) programs: usize,
    /// How each lock is used.
    pub(crate) locks: Vec<LockUse>,
    pub(crate) faults: Faults,
    /// When clients begin to work. Before that, new servers get their votes.
    pub(crate) start: Time,
    /// For how long clients work and faults occur.
    pub(crate) span: Time,
    /// The mean time between two faults.
    pub(crate) fault_pause: Time,
    /// For how long clients continue after the faults.
    pub(crate) peace: Time,
    pub(crate) delay: (Time, Time),
    /// How many of a thousand messages take up to 300 ms.
    pub(crate) spikes: u64,
    /// The greatest difference between the clocks' rates, in millionths.
    pub(crate) drift: i64,
    /// Whether the servers keep their data across restarts, and report that.
    pub(crate) durable: bool,
    pub(crate) ttls: Vec<Time>,
    pub(crate) hold_max: Time,
    pub(crate) idle_max: Time,
    /// How many of a hundred waits are cancelled.
    pub(crate) cancels: u64,
    /// Of a hundred requests, how many do not wait, and how many go ahead of the queue.
    pub(crate) tries: u64,
    pub(crate) barges: u64,
    /// How many of a hundred requests have a lock delay.
    pub(crate) lock_delays: u64,
    /// Servers get each script when a client first calls it.
    pub(crate) lazy_scripts: bool,
    /// Foreign clients that poll the first lock.
    pub(crate) pollers: usize,
    /// Whether clients that join later have a list with another server under the last id, which is empty.
    pub(crate) has_second_list: bool,
}

/// How the programs use one lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockUse {
    Exclusive,
    /// How many of a hundred requests share the lock.
    Readers(u64),
    Semaphore(Permits),
    /// A semaphore for which some programs want another number of permits.
    Disagreeing(Permits, Permits),
}

impl LockUse {
    pub(crate) fn mode(self, rng: &SimRng) -> Mode {
        match self {
            Self::Readers(percent) if rng.percent(percent) => Mode::Shared,
            Self::Exclusive | Self::Readers(_) => Mode::Exclusive,
            Self::Semaphore(permits) => match rng.below(100) {
                0..90 => Mode::Permit(permits),
                90..95 => Mode::Shared,
                _ => Mode::Exclusive,
            },
            Self::Disagreeing(permits, other) => match rng.below(100) {
                0..90 => Mode::Permit(permits),
                90..96 => Mode::Permit(other),
                _ => Mode::Exclusive,
            },
        }
    }
}

impl Plan {
    pub(crate) const CLOCK_TOLERANCE: Duration = Duration::from_millis(20);
    pub(crate) const MAX_TTL: Time = 2 * SECOND;

    pub(crate) fn draw(rng: &SimRng, allowed: Faults) -> Self {
        let faults = draw_faults(rng, allowed);
        let has_faults = faults != Faults::NONE;
        let servers = *rng.pick(&[1, 3, 3, 3, 5, 5]);
        let slowest = *rng.pick(&[100, 400, 800, 3 * MILLIS, 10 * MILLIS]);
        let forgets = faults.has(FaultKind::RestartEmpty) || faults.has(FaultKind::Flush);
        Self {
            servers,
            clients: 1 + rng.index(5),
            programs: *rng.pick(&[1, 1, 2, 4]),
            locks: draw_locks(rng),
            faults,
            start: match rng.percent(85) {
                true => Self::MAX_TTL + 3 * SECOND / 2,
                false => 0,
            },
            span: rng.between(SECOND / 2, if has_faults { 5 } else { 2 } * SECOND / 2),
            fault_pause: rng.between(200 * MILLIS, 1_500 * MILLIS),
            peace: if has_faults && rng.percent(40) {
                SECOND
            } else {
                0
            },
            delay: (50.max(slowest / 4), slowest),
            spikes: *rng.pick(&[0, 0, 2, 10]),
            drift: if faults.has(FaultKind::Drift) {
                10_000
            } else {
                50
            },
            durable: !forgets && rng.percent(70),
            ttls: vec![400 * MILLIS, SECOND, Self::MAX_TTL],
            hold_max: *rng.pick(&[MILLIS, 20 * MILLIS, 100 * MILLIS, 600 * MILLIS]),
            idle_max: *rng.pick(&[20 * MILLIS, 200 * MILLIS, 800 * MILLIS]),
            cancels: *rng.pick(&[0, 5, 15]),
            tries: *rng.pick(&[0, 10, 40]),
            barges: *rng.pick(&[0, 0, 5]),
            lock_delays: *rng.pick(&[0, 0, 0, 30]),
            lazy_scripts: rng.percent(5),
            // Foreign clients rely on servers that lost data.
            has_second_list: false,
            pollers: usize::from(rng.percent(8) && !forgets && !faults.has(FaultKind::ClockStep)),
        }
    }

    /// Three servers. Clients with another list join them, and then the network splits: each list reaches its own server
    /// of the last id, and another one of the two that both know.
    #[cfg(test)]
    pub(crate) fn with_two_lists(rng: &SimRng) -> Self {
        Self {
            servers: 3,
            clients: 2,
            start: Self::MAX_TTL + 3 * SECOND / 2,
            span: 12 * SECOND,
            pollers: 0,
            has_second_list: true,
            ..Self::draw(rng, Faults::NONE)
        }
    }

    pub(crate) fn majority(&self) -> usize {
        self.servers / 2 + 1
    }

    /// How long after the last fault all servers have a vote again and the clients know it.
    pub(crate) fn recovery(&self) -> Time {
        Self::MAX_TTL + 3 * SECOND
    }

    pub(crate) fn has(&self, kind: FaultKind) -> bool {
        self.faults.has(kind)
    }
}

/// Draws no fault, one, a few kinds, or many.
fn draw_faults(rng: &SimRng, allowed: Faults) -> Faults {
    let each = *rng.pick(&[10, 20, 35, 70]);
    let mut faults: Faults = allowed.iter().filter(|_| rng.percent(each)).collect();
    // Clocks that drift apart take the servers' votes away, and so hide other faults.
    if rng.percent(70) {
        faults = faults.without(FaultKind::Drift);
    }
    // Fences depend on the clients' clocks once counters are lost. So a run has only one of the two faults.
    if faults.has(FaultKind::WildClock) {
        for kind in [FaultKind::RestartEmpty, FaultKind::Flush] {
            faults = faults.without(kind);
        }
    }
    faults
}

fn draw_locks(rng: &SimRng) -> Vec<LockUse> {
    let permits = |count| Permits::new(count).expect("a valid number");
    let draw = |_| match rng.below(10) {
        0..5 => LockUse::Exclusive,
        5..8 => LockUse::Readers(*rng.pick(&[30, 60, 85])),
        8 => LockUse::Semaphore(permits(*rng.pick(&[1, 2, 3, 5]))),
        _ if rng.percent(70) => LockUse::Semaphore(permits(2)),
        _ => LockUse::Disagreeing(permits(2), permits(3)),
    };
    (0..*rng.pick(&[1, 1, 1, 2])).map(draw).collect()
}
