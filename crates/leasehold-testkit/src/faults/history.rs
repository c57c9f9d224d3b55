use leasehold::clock::BootInstant;

/// One hold of the lock, as its worker reported it. All processes of a machine read the same clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Which of the workers.
    pub worker: usize,
    /// The fence of its guard.
    pub fence: u64,
    /// Before the lock was asked for.
    pub asked: BootInstant,
    /// After it was granted.
    pub granted: BootInstant,
    /// The last instant at which the guard is known to have claimed to be valid. The worker reads it before
    /// it asks the guard, and the guard says yes. Since loss is final, the guard was valid from the grant
    /// until then.
    pub valid_until: Option<BootInstant>,
    /// When the worker finished, including its last write. `None` if it never did.
    pub left: Option<BootInstant>,
}

/// The requests to the record, in the order in which it carried them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A worker with this fence read the record, or was refused.
    Read {
        /// The fence shown.
        fence: u64,
        /// Whether the record accepted it.
        accepted: bool,
    },
    /// A worker with this fence wrote the record, or was refused.
    Write {
        /// The fence shown.
        fence: u64,
        /// The value that the writer had read.
        base: u64,
        /// The value written.
        value: u64,
        /// Whether the record accepted it.
        accepted: bool,
    },
    /// A worker wrote the plain record, which knows no fences.
    PlainWrite {
        /// The value that the writer had read.
        base: u64,
        /// The value written.
        value: u64,
    },
}

/// All that happened to one lock and to the record behind it.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// In no particular order.
    pub holds: Vec<Hold>,
    /// In the order in which they took effect.
    pub entries: Vec<Entry>,
    /// The workers that did not get the lock, and why, in order.
    pub refusals: Vec<(usize, String)>,
}
