//! When the next attempt is due.

use std::time::Duration;

use crate::clock::BootInstant;
use crate::quorum::ballot::majority;
use crate::quorum::waiting::board::{Board, decisive};

impl Board {
    /// When the next attempt is due; `None`: at once, as the waiter has no place yet.
    pub(in crate::quorum::waiting) fn due(&self) -> Option<BootInstant> {
        let asked = self.asked?;
        let other = [
            self.called,
            self.turn_comes(),
            self.turn_is_near(asked),
            self.is_wanted(),
            self.nobody_will_tell(asked),
            self.word_is_due(asked),
            self.nobody_came(asked),
            self.hearing_is_lost(asked),
        ];
        other
            .into_iter()
            .flatten()
            .chain([asked + self.floor()])
            .min()
    }

    /// A majority says that it is this waiter's turn; or a minority does, and the others had their
    /// time. That time doubles with each attempt that it led to in vain. Those who went for the same
    /// permit again and again wait for different times.
    pub(super) fn turn_comes(&self) -> Option<BootInstant> {
        if let Some(agreed) = self.agreed() {
            return Some(agreed);
        }
        let mut told: Vec<BootInstant> = self.seats.iter().filter_map(|seat| seat.told).collect();
        told.sort_unstable();
        if let Some(decisive) = told.get(majority(self.seats.len()) - 1) {
            let collided = self.wanted_another() && self.fruitless > 0;
            let apart = OTHERS_MAY_FOLLOW * 2_u32.saturating_pow(self.fruitless.min(6));
            return Some(match collided {
                // Members that each miss another lease never agree: they are asked once a second.
                true if apart > FLOOR_NEAR => *decisive + FLOOR_NEAR,
                true => *decisive + self.spread(apart),
                false => *decisive,
            });
        }
        let patience = OTHERS_MAY_FOLLOW * 2_u32.saturating_pow(self.fruitless.min(6));
        Some(*told.first()? + patience.min(FLOOR_NEAR))
    }

    /// Since when a majority says by itself that it is this waiter's turn, and for one and the same permit
    /// if for any. However often others came in between, they were not told so.
    pub(super) fn agreed(&self) -> Option<BootInstant> {
        let seats = || self.seats.iter().filter(|seat| seat.hinted.is_some());
        let since = |named| {
            let alike = seats().filter(|seat| seat.named == named);
            let mut hinted: Vec<_> = alike.filter_map(|seat| seat.hinted).collect();
            hinted.sort_unstable();
            hinted.get(majority(self.seats.len()) - 1).copied()
        };
        seats().find_map(|seat| since(seat.named))
    }

    /// The head, and the next one in case it is dead, try when a majority may be free.
    fn turn_is_near(&self, asked: BootInstant) -> Option<BootInstant> {
        let until = decisive(self.seats.iter().filter_map(|seat| seat.until), &self.seats);
        let free = until.map(|until| until.max(asked));
        match self.place()? {
            1 if self.seats.iter().any(|seat| seat.silent) => {
                let poll = asked + SILENT_POLL + self.spread(SILENT_POLL / 4);
                Some(free.map_or(poll, |free| poll.min(free + SLACK_OF_HEAD)))
            }
            1 => Some(free? + SLACK_OF_HEAD),
            2 => Some(free? + SLACK_OF_NEXT),
            _ => None,
        }
    }

    /// Where too few members can tell this waiter that it is its turn, it looks: the nearer its turn, the
    /// more often, so that all of them together do not ask more than a few times as often as the
    /// first.
    fn nobody_will_tell(&self, asked: BootInstant) -> Option<BootInstant> {
        let tell = self.seats.iter().filter(|seat| !seat.untold).count();
        let place = u32::try_from(self.place()?).unwrap_or(u32::MAX);
        let pause = SILENT_POLL.saturating_mul(place);
        (tell < majority(self.seats.len()))
            .then(|| asked + pause.min(FLOOR_FAR) + self.spread(SILENT_POLL / 4))
    }

    /// A single member drops whoever does not show itself. It asks for that once a second at most, and
    /// the others may follow: one attempt shows it to all.
    fn is_wanted(&self) -> Option<BootInstant> {
        let first = self.seats.iter().filter_map(|seat| seat.wanted).min()?;
        Some(first + OTHERS_MAY_FOLLOW)
    }

    /// Members said that it would be worth asking by now.
    fn word_is_due(&self, asked: BootInstant) -> Option<BootInstant> {
        let soon = decisive(self.seats.iter().filter_map(|seat| seat.soon), &self.seats)?;
        Some(soon.max(asked) + SLACK_OF_WORD)
    }

    /// Of several dead waiters in a row only the first has somebody who was told to stand in: whoever
    /// saw the lock kept for one, and still waits when that is over, looks once more.
    fn nobody_came(&self, asked: BootInstant) -> Option<BootInstant> {
        let lapses = decisive(
            self.seats.iter().filter_map(|seat| seat.lapses),
            &self.seats,
        )?;
        Some(lapses.max(asked + FLOOR_NEAR) + SLACK_OF_WORD + self.spread(SPREAD_OF_DEAF))
    }

    /// Where the waiter hears nothing any more it is being skipped: it asks again, but where the
    /// connection breaks each time, no more than once a second.
    fn hearing_is_lost(&self, asked: BootInstant) -> Option<BootInstant> {
        let lost = self.seats.iter().filter_map(|seat| seat.deaf).min()?;
        Some((lost + self.spread(SPREAD_OF_DEAF)).max(asked + FLOOR_NEAR))
    }

    /// How long a waiter goes by what it was told, which may have been lost. Far behind, longer.
    fn floor(&self) -> Duration {
        let nearest = self.seats.iter().filter_map(|seat| seat.place).min();
        if nearest.is_none_or(|place| place <= NEAR) {
            FLOOR_NEAR + self.spread(FLOOR_NEAR)
        } else {
            FLOOR_FAR + self.spread(FLOOR_FAR)
        }
    }

    fn spread(&self, most: Duration) -> Duration {
        let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.random % micros.max(1))
    }
}

/// After the first member said that it is a waiter's turn, or wanted to hear of it, the others may have
/// as long as this.
const OTHERS_MAY_FOLLOW: Duration = Duration::from_millis(20);

/// How much later than the end of a lease the head tries, since servers count in milliseconds; and
/// how much later the one behind it does.
const SLACK_OF_HEAD: Duration = Duration::from_millis(3);
const SLACK_OF_NEXT: Duration = Duration::from_millis(50);

/// How much later than a member said it is asked.
const SLACK_OF_WORD: Duration = Duration::from_millis(10);

/// How often the head looks whether another library has freed its lock, or whether it is its turn where
/// nobody can tell it.
const SILENT_POLL: Duration = Duration::from_millis(90);

/// So many at the front ask at least every two seconds, unheard; those behind, every eight.
const NEAR: u64 = 16;
pub(super) const FLOOR_NEAR: Duration = Duration::from_secs(1);
const FLOOR_FAR: Duration = Duration::from_secs(4);

/// Over this span those ask again whose connection broke.
const SPREAD_OF_DEAF: Duration = Duration::from_millis(50);
