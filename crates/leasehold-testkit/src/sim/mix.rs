use leasehold::{Mode, Permits};

use super::chance::Chance;

/// How the programs of a world use its locks. It is drawn from a stream of its own, and so are its
/// programs' choices, so that worlds of mutexes alone are what they would be without it.
#[derive(Clone, Debug)]
pub(crate) struct Mix {
    uses: Vec<Use>,
    /// In how many of a hundred cases several locks are taken as one.
    sets: usize,
    /// How often in a hundred moments a writer goes on as a reader.
    downgrades: usize,
}

/// What one key is for.
#[derive(Clone, Copy, Debug)]
enum Use {
    Alone,
    /// So many in a hundred read.
    Reading(usize),
    /// So many work side by side; a few in a hundred want it otherwise.
    Working(Permits),
}

impl Mix {
    /// Of at least so many keys.
    pub(crate) fn draw(chance: &Chance, keys: usize) -> Self {
        if !chance.percent(40) {
            let uses = vec![Use::Alone; keys];
            return Self {
                uses,
                sets: 0,
                downgrades: 0,
            };
        }
        let downgrades = *chance.pick(&[0, 0, 20, 50]);
        // Where all are alike, sets may overlap in every way.
        if chance.percent(25) {
            let reading = Use::Reading(*chance.pick(&[30, 60]));
            let of_all = *chance.pick(&[Use::Alone, Use::Alone, reading]);
            return Self {
                uses: vec![of_all; keys.max(3)],
                sets: *chance.pick(&[30, 60, 90]),
                downgrades,
            };
        }
        let of_key = |_| match chance.below(6) {
            0 => Use::Alone,
            1..4 => Use::Reading(*chance.pick(&[30, 60, 85])),
            _ => Use::Working(Permits::new(*chance.pick(&[2, 2, 3])).expect("a valid number")),
        };
        Self {
            uses: (0..keys).map(of_key).collect(),
            sets: 0,
            downgrades,
        }
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
        }
    }

    /// Whether whoever writes goes on as a reader, others beside it.
    pub(crate) fn downgrades(&self, key: usize, chance: &Chance) -> bool {
        let reading = matches!(self.uses[key], Use::Reading(_));
        reading && self.downgrades > 0 && chance.percent(self.downgrades)
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
