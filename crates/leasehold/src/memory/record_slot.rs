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
        let greatest = self.seen.map(|seen| seen.stamp);
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
        match self.seen {
            Some(seen) if seen.stamp > write.stamp => Wrote::Superseded(seen.stamp.fence),
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

    fn see(&mut self, stamp: Stamp, now: BootInstant) {
        let end = now + RECORD_MEMORY;
        self.seen = Some(Seen { stamp, end });
    }
}
