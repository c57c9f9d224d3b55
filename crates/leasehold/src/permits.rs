use std::fmt;

use crate::error::{Error, ErrorKind};

/// How many may hold a lock together: the permits of a semaphore, 1 to [`Permits::MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permits(u8);

impl Permits {
    /// The most permits a lock may have.
    pub const MAX: u32 = 128;

    /// So many permits.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if `count` is 0 or greater than [`Permits::MAX`].
    pub fn new(count: u32) -> Result<Self, Error> {
        match u8::try_from(count) {
            Ok(few) if (1..=Self::MAX).contains(&count) => Ok(Self(few)),
            _ => Err(Error::new(
                ErrorKind::InvalidInput,
                format!("{count} permits: a lock has 1 to {}", Self::MAX),
            )),
        }
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0.into()
    }

    /// The numbers of the permits, from 0 on.
    pub fn slots(self) -> impl Iterator<Item = Slot> {
        (0..self.0).map(Slot)
    }
}

impl fmt::Display for Permits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Permits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permits({self})")
    }
}

/// One of the permits of a lock, by its number: 0 to one less than there are.
///
/// A permit is held by one owner at a time, as a lock of its own is. That is what makes permits sound on
/// a quorum: of three holders that are each counted on another majority of five members, every
/// member would see two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u8);

impl Slot {
    /// The permit of this number.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if there is none such among `permits`.
    pub fn new(number: u32, permits: Permits) -> Result<Self, Error> {
        match u8::try_from(number) {
            Ok(few) if few < permits.0 => Ok(Self(few)),
            _ => Err(Error::new(
                ErrorKind::InvalidInput,
                format!("permit {number} of {permits}: they are numbered from 0"),
            )),
        }
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0.into()
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({self})")
    }
}

/// A set of permits.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Slots(u128);

impl Slots {
    /// Adds `slot`.
    pub fn insert(&mut self, slot: Slot) {
        self.0 |= 1 << slot.0;
    }

    /// Takes `slot` out.
    pub fn remove(&mut self, slot: Slot) {
        self.0 &= !(1 << slot.0);
    }

    /// Whether `slot` is among them.
    pub fn contains(self, slot: Slot) -> bool {
        self.0 & (1 << slot.0) != 0
    }

    /// How many they are.
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them, the lowest first.
    pub fn iter(self) -> impl Iterator<Item = Slot> {
        (0..u8::BITS as u8 * 16)
            .map(Slot)
            .filter(move |slot| self.contains(*slot))
    }
}

impl FromIterator<Slot> for Slots {
    fn from_iter<T: IntoIterator<Item = Slot>>(slots: T) -> Self {
        let mut all = Self::default();
        slots.into_iter().for_each(|slot| all.insert(slot));
        all
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_one_to_128() {
        for count in [1, 3, 128] {
            assert_eq!(Permits::new(count).unwrap().get(), count);
        }
        for count in [0, 129, 256, 259, u32::MAX] {
            let error = Permits::new(count).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(&count.to_string()), "{error}");
        }
    }

    #[test]
    fn slots_are_numbered_from_zero() {
        let permits = Permits::new(3).unwrap();
        let all: Vec<u32> = permits.slots().map(Slot::get).collect();
        assert_eq!(all, [0, 1, 2]);
        assert!(Slot::new(2, permits).is_ok());
        assert!(Slot::new(3, permits).is_err());
    }

    #[test]
    fn a_set_holds_the_last_slot_too() {
        let permits = Permits::new(Permits::MAX).unwrap();
        let all: Slots = permits.slots().collect();
        assert_eq!(all.len(), 128);
        assert_eq!(all.iter().count(), 128);
        let mut some: Slots = permits
            .slots()
            .filter(|slot| slot.get() % 127 == 0)
            .collect();
        assert_eq!(format!("{some:?}"), "{Slot(0), Slot(127)}");
        some.remove(Slot(127));
        some.remove(Slot(126));
        assert_eq!(some, [Slot(0)].into_iter().collect());
    }
}
