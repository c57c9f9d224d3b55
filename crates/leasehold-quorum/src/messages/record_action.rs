use leasehold_types::{Fence, Opened, Reading, RecordWrite, WriteOutcome};

/// What a client does with a record.
#[derive(Clone, Debug)]
pub enum RecordAction {
    /// Refuses smaller fences from now on, and reads the value.
    Open(Fence),
    /// Writes the value, unless a greater version was seen.
    Write(RecordWrite),
    /// Reads the value, and changes nothing.
    Read,
}

/// The answer to a [`RecordAction`], from one member or from the quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordAnswer {
    /// The answer to [`RecordAction::Open`].
    Opened(Opened),
    /// The answer to [`RecordAction::Write`].
    Written(WriteOutcome),
    /// The answer to [`RecordAction::Read`].
    Read(Reading),
}
