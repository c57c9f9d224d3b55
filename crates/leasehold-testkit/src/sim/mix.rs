use std::time::Duration;

use leasehold::{Mode, Permits};

use super::chance::Chance;
use super::pace::Pace;

/// How the programs of a world use its locks. It is drawn from streams of its own, and so are its
/// programs' choices, so that worlds of mutexes alone are what they would be without it.
#[derive(Clone, Debug)]
pub(crate) struct Mix {
    uses: Vec<Use>,
    /// In how many of a hundred cases several locks are taken as one.
    sets: usize,
    /// And how many of those are given up while they are waited for.
    aborts: usize,
    /// How often in a hundred moments a writer goes on as a reader.
    downgrades: usize,
    pub(crate) pace: Pace,
    /// In how many of a hundred cases a lock is to stay shut after an unclean end.
    delays: usize,
}

/// What one key is for.
#[derive(Clone, Copy, Debug)]
enum Use {
    Alone,
    /// So many in a hundred read.
    Reading(usize),
    /// So many work side by side; a few in a hundred want it otherwise.
    Working(Permits),
    /// The same, and a few know of another number.
    Disagreeing(Permits, Permits),
}

impl Mix {
    /// Of at least so many keys. What follows from `pacing` came later than the rest.
    pub(crate) fn draw(chance: &Chance, pacing: &Chance, keys: usize) -> Self {
        let mut mix = Self {
            uses: vec![Use::Alone; keys],
            sets: 0,
            aborts: 0,
            downgrades: 0,
            pace: Pace::Usual,
            delays: 0,
        };
        if !chance.percent(40) {
            if pacing.percent(12) {
                mix.pace = Pace::Crowds;
                mix.uses = vec![Use::Alone];
            }
            return mix;
        }
        mix.downgrades = *chance.pick(&[0, 0, 20, 50]);
        // Where all are alike, sets may overlap in every way.
        if chance.percent(25) {
            let reading = Use::Reading(*chance.pick(&[30, 60]));
            let of_all = *chance.pick(&[Use::Alone, Use::Alone, reading]);
            mix.uses = vec![of_all; keys.max(3)];
            mix.sets = *chance.pick(&[30, 60, 90]);
        } else {
            mix.uses = (0..keys).map(|_| Use::draw(chance)).collect();
        }
        if pacing.percent(60) {
            mix.delays = *pacing.pick(&[0, 30, 60]);
            mix.hasten(pacing);
        }
        mix
    }

    /// Gives some worlds a pace in which one thing happens far more often than by chance.
    fn hasten(&mut self, pacing: &Chance) {
        if self.sets > 0 && pacing.percent(50) {
            self.aborts = 40;
            return;
        }
        let permits = permits(*pacing.pick(&[2, 2, 3]));
        let other = permits_other_than(permits);
        match pacing.below(10) {
            0..3 => {
                self.pace = Pace::Rushes;
                self.uses = vec![Use::Disagreeing(permits, other)];
            }
            3..6 => {
                self.pace = Pace::Leisure;
                self.downgrades = 80;
                self.uses = vec![Use::Reading(*pacing.pick(&[75, 85]))];
            }
            6..8 => {
                self.pace = Pace::Perils;
                self.delays = 90;
                self.uses = vec![*pacing.pick(&[Use::Reading(30), Use::Working(permits)])];
            }
            8..9 => {
                self.pace = Pace::Leisure;
                self.uses =
                    vec![*pacing.pick(&[Use::Working(permits), Use::Disagreeing(permits, other)])];
            }
            _ => return,
        }
        self.sets = 0;
    }

    /// Whether it is more than a world of mutexes.
    pub(crate) fn is_mixed(&self) -> bool {
        self.sets > 0 || self.uses.iter().any(|it| !matches!(it, Use::Alone))
    }

    pub(crate) fn keys(&self) -> usize {
        self.uses.len()
    }

    /// In which mode a lock is taken this time.
    pub(crate) fn mode(&self, key: usize, chance: &Chance) -> Mode {
        match self.uses[key] {
            Use::Alone => Mode::Exclusive,
            Use::Reading(percent) if chance.percent(percent) => Mode::Shared,
            Use::Reading(_) => Mode::Exclusive,
            Use::Working(permits) => match chance.below(100) {
                0..85 => Mode::Permit(permits),
                85..93 => Mode::Shared,
                _ => Mode::Exclusive,
            },
            Use::Disagreeing(permits, other) => match chance.below(100) {
                0..90 => Mode::Permit(permits),
                90..96 => Mode::Permit(other),
                _ => Mode::Exclusive,
            },
        }
    }

    /// Whether whoever writes goes on as a reader, others beside it.
    pub(crate) fn downgrades(&self, key: usize, chance: &Chance) -> bool {
        let reading = matches!(self.uses[key], Use::Reading(_));
        reading && self.downgrades > 0 && chance.percent(self.downgrades)
    }

    /// For how long a lock that is taken for `ttl` is to stay shut after an unclean end: together they
    /// are no longer than `longest`.
    pub(crate) fn delay(&self, ttl: Duration, longest: Duration, chance: &Chance) -> Duration {
        if self.delays == 0 || !chance.percent(self.delays) {
            return Duration::ZERO;
        }
        let fits = |delay: &&Duration| ttl + **delay <= longest;
        let fitting: Vec<_> = DELAYS.iter().filter(fits).collect();
        match fitting.len() {
            0 => Duration::ZERO,
            count => *fitting[chance.below(count)],
        }
    }

    /// Whether a set is given up while it is waited for.
    pub(crate) fn aborts(&self, chance: &Chance) -> bool {
        self.aborts > 0 && chance.percent(self.aborts)
    }

    /// The locks that are taken together with this one: mostly none.
    pub(crate) fn others(&self, key: usize, chance: &Chance) -> Vec<usize> {
        if self.sets == 0 || !chance.percent(self.sets) {
            return Vec::new();
        }
        let mut others: Vec<usize> = (0..self.keys()).filter(|other| *other != key).collect();
        if chance.percent(60) {
            others.remove(chance.below(others.len()));
        }
        others
    }
}

impl Use {
    fn draw(chance: &Chance) -> Self {
        match chance.below(6) {
            0 => Self::Alone,
            1..4 => Self::Reading(*chance.pick(&[30, 60, 85])),
            _ => Self::Working(permits(*chance.pick(&[2, 2, 3]))),
        }
    }
}

fn permits(count: u32) -> Permits {
    Permits::new(count).expect("a valid number")
}

fn permits_other_than(there: Permits) -> Permits {
    permits(5 - there.get())
}

/// With no TTL of a program do two of them make the same sum.
const DELAYS: [Duration; 3] = [
    Duration::from_millis(300),
    Duration::from_millis(900),
    Duration::from_millis(1_500),
];
