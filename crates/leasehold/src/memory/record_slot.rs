use std::sync::Arc;

use crate::clock::BootInstant;
use crate::fence::Fence;
use crate::records::{Opened, RECORD_MEMORY, Reading, RecordWrite, Stamp, Written, Wrote};

/// One key's record.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordSlot {
    seen: Option<Seen>,
    value: Option<Value>,
}

/// The greatest stamp that was here, and until when it is remembered. Opening with a fence is the step
/// before its first.
#[derive(Clone, Copy, Debug)]
struct Seen {
    stamp: Stamp,
    end: BootInstant,
}

#[derive(Clone, Debug)]
struct Value {
    stamp: Stamp,
    bytes: Arc<[u8]>,
    end: BootInstant,
}

impl RecordSlot {
    /// Forgets what is over.
    pub(super) fn expire(&mut self, now: BootInstant) {
        self.seen.take_if(|seen| now >= seen.end);
        self.value.take_if(|value| now >= value.end);
    }

    /// Whether there is nothing in it to remember.
    pub(super) fn is_empty(&self) -> bool {
        self.seen.is_none() && self.value.is_none()
    }

    pub(super) fn open(&mut self, fence: Fence, now: BootInstant) -> Opened {
        let greatest = self.greatest();
        if let Some(greatest) = greatest.filter(|greatest| greatest.fence > fence) {
            return Opened::Superseded(greatest.fence);
        }
        let opening = Stamp { fence, step: 0 };
        self.see(
            greatest.map_or(opening, |greatest| greatest.max(opening)),
            now,
        );
        Opened::Open(self.read(now))
    }

    pub(super) fn write(&mut self, write: &RecordWrite, now: BootInstant) -> Wrote {
        match self.greatest() {
            Some(greatest) if greatest > write.stamp => Wrote::Superseded(greatest.fence),
            _ => {
                let end = now + write.retention;
                self.see(write.stamp, now);
                self.value = Some(Value {
                    stamp: write.stamp,
                    bytes: Arc::clone(&write.bytes),
                    end,
                });
                Wrote::Written
            }
        }
    }

    pub(super) fn read(&self, now: BootInstant) -> Reading {
        Reading::settled(
            self.value.as_ref().map(|value| {
                Written::new(value.stamp, Arc::clone(&value.bytes), value.end.since(now))
            }),
        )
    }

    /// A value is often kept for longer than it is remembered who was here.
    fn greatest(&self) -> Option<Stamp> {
        let seen = self.seen.map(|seen| seen.stamp);
        seen.max(self.value.as_ref().map(|value| value.stamp))
    }

    fn see(&mut self, stamp: Stamp, now: BootInstant) {
        let end = now + RECORD_MEMORY;
        self.seen = Some(Seen { stamp, end });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_value_keeps_out_smaller_stamps_after_who_was_here_is_forgotten() {
        let stamp = |fence, step| {
            let fence = Fence::new(fence).unwrap();
            Stamp { fence, step }
        };
        let write = |stamp| RecordWrite::new(stamp, *b"x", RECORD_MEMORY * 2).unwrap();
        let mut slot = RecordSlot::default();
        let now = BootInstant::from_nanos(0);
        assert_eq!(slot.write(&write(stamp(7, 2)), now), Wrote::Written);
        let later = now + RECORD_MEMORY + Duration::from_secs(1);
        slot.expire(later);
        assert!(slot.seen.is_none() && slot.value.is_some());
        let shut_out = Wrote::Superseded(stamp(7, 2).fence);
        for late in [stamp(6, 9), stamp(7, 1)] {
            assert_eq!(slot.clone().write(&write(late), later), shut_out);
        }
        let opened = slot.clone().open(stamp(6, 1).fence, later);
        assert_eq!(opened, Opened::Superseded(stamp(7, 2).fence));
        assert_eq!(slot.write(&write(stamp(7, 3)), later), Wrote::Written);
    }
}
