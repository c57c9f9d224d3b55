use leasehold::clock::BootInstant;

/// One hold of the lock, as its worker told it. All processes of a machine read the same clock.
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
    /// The last instant at which the guard is known to have called itself valid: read before a
    /// question that was answered with yes. Since lost is final, it was valid from the grant until
    /// then.
    pub valid_until: Option<BootInstant>,
    /// When the worker was through, its last write included. `None` if it never came to that.
    pub left: Option<BootInstant>,
}

/// What the record was asked to do, in the order in which it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Somebody with this fence read the record, or was refused.
    Read {
        /// The fence shown.
        fence: u64,
        /// Whether it was let in.
        accepted: bool,
    },
    /// Somebody with this fence wrote the record, or was refused.
    Write {
        /// The fence shown.
        fence: u64,
        /// The value that the writer had read.
        base: u64,
        /// The value written.
        value: u64,
        /// Whether it was let in.
        accepted: bool,
    },
    /// Somebody wrote the record's twin, which knows no fences.
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
    /// Which workers did not get the lock, and why, one after the other.
    pub refusals: Vec<(usize, String)>,
}
