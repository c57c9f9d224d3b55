use std::time::Duration;

use super::chance::Chance;
use super::faults::{FaultClass, Faults};
use super::mix::Mix;
use super::pace::Pace;

/// What a world is like: all of it follows from the seed and from the faults that are allowed.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) servers: usize,
    pub(crate) clients: usize,
    /// How many programs of each client take locks side by side.
    pub(crate) programs: usize,
    pub(crate) mix: Mix,
    /// How long clients work, and things go wrong.
    pub(crate) span: Duration,
    /// Those that this world has.
    pub(crate) faults: Faults,
    /// In millionths: each machine's clock is off by at most so much.
    pub(crate) drift: i64,
    /// The mean pause between two faults.
    pub(crate) calm: Duration,
    /// Servers drop a client's old connection when it makes a new one.
    pub(crate) kills_old: bool,
    /// Servers keep all their data across restarts, and say so.
    pub(crate) durable: bool,
    pub(crate) waits: bool,
    /// Many of those who wait do so without a limit.
    pub(crate) patient: bool,
    /// Some of those who wait go ahead of the queue.
    pub(crate) barges: bool,
    /// How long clients work on when nothing goes wrong any more and all members count again.
    pub(crate) peace: Duration,
    /// An operator forms the set; else the first clients do.
    pub(crate) init: bool,
}

impl Plan {
    pub(crate) const CLOCK_TOLERANCE: Duration = Duration::from_millis(100);
    pub(crate) const MAX_TTL: Duration = Duration::from_secs(4);
    pub(crate) const TTLS: [Duration; 3] = [
        Duration::from_millis(1_010),
        Duration::from_millis(2_000),
        Self::MAX_TTL,
    ];

    pub(crate) fn draw(chance: &Chance, mixing: &Chance, pacing: &Chance, allowed: Faults) -> Self {
        let mut faults: Faults = allowed.iter().filter(|_| chance.percent(35)).collect();
        // Those that shape the whole world hide others: they are rarer.
        for class in [
            FaultClass::SameServer,
            FaultClass::OtherSet,
            FaultClass::Drift,
        ] {
            if chance.percent(70) {
                faults = faults.without(class);
            }
        }
        // Fences rest on clients' clocks once counters are lost: a world has the one or the other.
        let forgets = faults.any_of(&FaultClass::FORGETTING);
        if forgets && faults.has(FaultClass::WildClock) {
            faults = if chance.percent(50) {
                faults.without(FaultClass::WildClock)
            } else {
                let forgetting = FaultClass::FORGETTING.into_iter();
                forgetting.fold(faults, Faults::without)
            };
        }
        let servers = if chance.percent(70) { 3 } else { 5 };
        let clients = 2 + chance.below(3);
        let programs = *chance.pick(&[1, 1, 2, 3]);
        let keys = 1 + chance.below(2);
        let mut plan = Self {
            servers,
            clients,
            programs,
            mix: Mix::draw(mixing, pacing, keys),
            span: chance.millis(15_000, 30_000),
            drift: if faults.has(FaultClass::Drift) {
                DRIFT_MAX
            } else {
                DRIFT_MIN
            },
            calm: chance.millis(500, 3_000),
            kills_old: chance.percent(50),
            durable: !faults.any_of(&FaultClass::FORGETTING),
            init: chance.percent(50),
            waits: chance.percent(75),
            patient: chance.percent(60),
            barges: chance.percent(20),
            peace: if chance.percent(30) {
                chance.millis(4_000, 10_000)
            } else {
                Duration::ZERO
            },
            faults,
        };
        // What is offered, and to whom, is judged only while nothing is in the way.
        if plan.mix.is_mixed() && plan.peace.is_zero() && mixing.percent(60) {
            plan.peace = mixing.millis(4_000, 10_000);
        }
        plan.keep_pace(pacing, allowed);
        // Where no member may ever count again, nobody may have to wait until one does.
        plan.patient &= plan.is_live();
        plan.barges &= plan.is_live();
        // A server that is two members is looked at twice as often as it is.
        if plan.has(FaultClass::SameServer) {
            plan.programs = 1;
        }
        plan
    }

    /// Makes room for what its pace is about.
    fn keep_pace(&mut self, pacing: &Chance, allowed: Faults) {
        match self.mix.pace {
            Pace::Usual => {}
            Pace::Rushes => {
                self.servers = *pacing.pick(&[3, 5, 5]);
                self.clients = 4;
                self.span = pacing.millis(9_000, 18_000);
            }
            Pace::Perils => {
                self.clients = 4;
                self.calm = pacing.millis(400, 1_000);
                let perils = [FaultClass::ClientCrash, FaultClass::Pause];
                let perils = perils.into_iter().filter(|class| allowed.has(*class));
                self.faults = perils.collect();
                (self.drift, self.durable) = (DRIFT_MIN, true);
            }
            Pace::Crowds => {
                self.clients = *pacing.pick(&[1, 2, 2, 3]);
                // Of whose members each of so many would ask in vain, again and again.
                self.faults = self.faults.without(FaultClass::OtherSet);
                self.programs = 5;
                self.patient = true;
                self.span = pacing.millis(4_000, 10_000);
                self.peace = pacing.millis(2_000, 6_000);
            }
            Pace::Leisure => {
                self.clients = 4;
                self.programs = 2;
                self.patient = true;
                self.span = pacing.millis(4_000, 8_000);
                self.peace = pacing.millis(12_000, 20_000);
            }
        }
    }

    /// Whether a free lock must be granted once all is set right: not where the members' clocks keep
    /// parting, nor where the set is no majority of different servers, or not for certain the one
    /// on the cards.
    pub(crate) fn is_live(&self) -> bool {
        let other_set = self.has(FaultClass::OtherSet)
            && (!self.init || self.faults.any_of(&FaultClass::FORGETTING));
        !self.has(FaultClass::Drift) && !self.has(FaultClass::SameServer) && !other_set
    }

    /// Whether the order of the queue, and how long its locks are free, is judged once nothing goes
    /// wrong any more.
    pub(crate) fn is_calm_in_the_end(&self) -> bool {
        self.is_live() && !self.has(FaultClass::OtherSet)
    }

    pub(crate) fn has(&self, class: FaultClass) -> bool {
        self.faults.has(class)
    }
}

/// In millionths, as those of good clocks, and of bad ones.
const DRIFT_MIN: i64 = 100;
const DRIFT_MAX: i64 = 40_000;
