use leasehold::Mode;

use super::chance::Chance;

/// How the programs of a world use its locks. It is drawn from a stream of its own, and so are its
/// programs' choices, so that worlds of mutexes alone are what they would be without it.
#[derive(Clone, Debug)]
pub(crate) struct Mix(Vec<Use>);

/// What one key is for.
#[derive(Clone, Copy, Debug)]
enum Use {
    Alone,
    /// So many in a hundred read.
    Reading(usize),
}

impl Mix {
    pub(crate) fn draw(chance: &Chance, keys: usize) -> Self {
        let mixed = chance.percent(40);
        let of_key = |_| match chance.below(4) {
            _ if !mixed => Use::Alone,
            0 => Use::Alone,
            _ => Use::Reading(*chance.pick(&[30, 60, 85])),
        };
        Self((0..keys).map(of_key).collect())
    }

    /// In which mode a lock is taken this time.
    pub(crate) fn mode(&self, key: usize, chance: &Chance) -> Mode {
        match self.0[key] {
            Use::Reading(percent) if chance.percent(percent) => Mode::Shared,
            Use::Alone | Use::Reading(_) => Mode::Exclusive,
        }
    }
}
