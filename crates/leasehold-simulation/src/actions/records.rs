//! Holders that open, write and read the record of their lock, even after their lease ended.

use leasehold::store::{Opened, RecordKey, RecordWrite, Version, WriteOutcome};
use leasehold::{Fence, Mode};
use leasehold_quorum::{Operation, Outcome, RecordAction, RecordAnswer};

use crate::history::{RecordEvent, What};
use crate::state::program::{Guard, Purpose, RecordStep};
use crate::state::simulation::Simulation;

/// The greatest number of writes by one holder.
const WRITES_MAX: u32 = 4;

impl Simulation {
    /// Opens the record of an exclusive lock for its holder, if the run has records.
    pub(crate) fn open_record(&mut self, client: usize, guard: &Guard) {
        let mut locks = self.locks.iter();
        let lock = locks.position(|lock| lock.key == guard.lock_request.key);
        if let Some(lock) = lock.filter(|_| self.has_records)
            && guard.lock_request.mode == Mode::Exclusive
        {
            let action = RecordAction::Open(guard.fence);
            self.ask_record(client, lock, guard.fence, 0, action);
        }
    }

    fn ask_record(
        &mut self,
        client: usize,
        lock: usize,
        fence: Fence,
        writes: u32,
        action: RecordAction,
    ) {
        let record = RecordKey::new(self.locks[lock].key.clone());
        let now = self.clients[client].now(self.now);
        let operation = Operation::Record(record, action.clone());
        let operation = self.clients[client].start(now, operation);
        let step = RecordStep {
            lock,
            fence,
            writes,
            began: self.now,
            action,
        };
        let purpose = Purpose::Record(step);
        self.clients[client].operations.insert(operation, purpose);
    }

    /// Records the answer, and continues: writes a few times, then reads.
    pub(crate) fn record_answered(&mut self, client: usize, step: RecordStep, outcome: Outcome) {
        let RecordStep {
            lock,
            fence,
            writes,
            began,
            action,
        } = step;
        let what = match &outcome {
            Outcome::Record(RecordAnswer::Opened(Opened::Open(reading))) => RecordEvent::Opened {
                fence: fence.get(),
                found: reading.written.as_ref().map(|it| version(it.version)),
            },
            Outcome::Record(RecordAnswer::Written(WriteOutcome::Written)) => RecordEvent::Written {
                version: (fence.get(), writes),
            },
            Outcome::Record(RecordAnswer::Read(reading)) => RecordEvent::Read {
                began,
                found: reading.written.as_ref().map(|it| version(it.version)),
                settled: reading.settled,
            },
            _ => return self.note(|| format!("client {client}: {action:?}: {outcome:?}")),
        };
        self.add(What::Record { client, lock, what });
        if self.is_quiet || matches!(action, RecordAction::Read) {
            return;
        }
        let next = match writes < WRITES_MAX {
            true => {
                let step = writes + 1;
                let retention = RecordWrite::RETENTION_MAX;
                let write = RecordWrite::new(Version { fence, step }, *b"value", retention);
                write.map(RecordAction::Write)
            }
            false => Ok(RecordAction::Read),
        };
        if let Ok(action) = next {
            self.ask_record(client, lock, fence, (writes + 1).min(WRITES_MAX), action);
        }
    }
}

fn version(version: Version) -> (u64, u32) {
    (version.fence.get(), version.step)
}
