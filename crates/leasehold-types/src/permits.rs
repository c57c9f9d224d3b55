use std::fmt;

use super::error::{Error, ErrorKind};

/// The number of permits of a semaphore, which is how many owners may hold it at once: 1 to
/// [`Permits::MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permits(u8);

impl Permits {
    /// The maximum number of permits of a lock.
    pub const MAX: u32 = 128;

    /// Returns `count` as a number of permits.
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

    /// Returns the number.
    pub fn get(self) -> u32 {
        self.0.into()
    }

    /// Returns the numbers of the permits, from 0 on.
    pub fn slots(self) -> impl Iterator<Item = PermitSlot> {
        (0..self.0).map(PermitSlot)
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

/// One of the permits of a lock, by its number, from 0 on.
///
/// One owner at a time holds a permit, as if it were a lock of its own. This is what makes permits correct
/// on a quorum. If permits were only counted, three holders could each have a different majority of five
/// members, and every member would see only two of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermitSlot(u8);

impl PermitSlot {
    /// Returns the permit with this number.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if `permits` has no permit with this number.
    pub fn new(number: u32, permits: Permits) -> Result<Self, Error> {
        match u8::try_from(number) {
            Ok(few) if few < permits.0 => Ok(Self(few)),
            _ => Err(Error::new(
                ErrorKind::InvalidInput,
                format!("permit {number} of {permits}: they are numbered from 0"),
            )),
        }
    }

    /// Returns the number.
    pub fn get(self) -> u32 {
        self.0.into()
    }
}

impl fmt::Display for PermitSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for PermitSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PermitSlot({self})")
    }
}

/// A set of permits.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PermitSlots(u128);

impl PermitSlots {
    /// Adds `slot`.
    pub fn insert(&mut self, slot: PermitSlot) {
        self.0 |= 1 << slot.0;
    }

    /// Removes `slot`.
    pub fn remove(&mut self, slot: PermitSlot) {
        self.0 &= !(1 << slot.0);
    }

    /// Returns whether the set contains `slot`.
    pub fn contains(self, slot: PermitSlot) -> bool {
        self.0 & (1 << slot.0) != 0
    }

    /// Returns the number of permits in the set.
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns each permit in the set, the lowest first.
    pub fn iter(self) -> impl Iterator<Item = PermitSlot> {
        (0..u8::BITS as u8 * 16)
            .map(PermitSlot)
            .filter(move |slot| self.contains(*slot))
    }
}

impl FromIterator<PermitSlot> for PermitSlots {
    fn from_iter<T: IntoIterator<Item = PermitSlot>>(slots: T) -> Self {
        let mut all = Self::default();
        slots.into_iter().for_each(|slot| all.insert(slot));
        all
    }
}

impl fmt::Debug for PermitSlots {
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
        let all: Vec<u32> = permits.slots().map(PermitSlot::get).collect();
        assert_eq!(all, [0, 1, 2]);
        assert!(PermitSlot::new(2, permits).is_ok());
        assert!(PermitSlot::new(3, permits).is_err());
    }

    #[test]
    fn a_set_holds_the_last_slot_too() {
        let permits = Permits::new(Permits::MAX).unwrap();
        let all: PermitSlots = permits.slots().collect();
        assert_eq!(all.len(), 128);
        assert_eq!(all.iter().count(), 128);
        let mut some: PermitSlots = permits
            .slots()
            .filter(|slot| slot.get() % 127 == 0)
            .collect();
        assert_eq!(format!("{some:?}"), "{PermitSlot(0), PermitSlot(127)}");
        some.remove(PermitSlot(127));
        some.remove(PermitSlot(126));
        assert_eq!(some, [PermitSlot(0)].into_iter().collect());
    }
}
