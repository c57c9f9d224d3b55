//! Bugs of the stores in memory and in files, and of the client.

use super::bug::Bug;

pub(super) const BUGS: &[Bug] = &[
    Bug {
        name: "memory-break-opens-at-once",
        suite: "memory",
        breaks: "an operator breaks a lease at its end, and the lock opens at once while its holder works on",
        file: "crates/leasehold/src/memory/table.rs",
        old: "        if record.at_once {\n",
        new: "        if record.at_once || !self.leases[at].broken {\n",
    },
    Bug {
        name: "memory-fence-of-a-waiter",
        suite: "memory",
        breaks: "a waiter gets the fence that it proposed when it came, below the fences of grants since then",
        file: "crates/leasehold/src/memory/table.rs",
        old: "Fence::after(Fence::new(self.counter), request.proposal)",
        new: "Fence::after(None, request.proposal)",
    },
    Bug {
        name: "memory-result-overwritten",
        suite: "memory",
        breaks: "a holder whose lease was broken writes its result over that of the next holder",
        file: "crates/leasehold/src/store/record_state.rs",
        old: "Some(greatest) if greatest > write.version =>",
        new: "Some(greatest) if greatest.fence == write.version.fence && greatest > write.version =>",
    },
    Bug {
        name: "file-downgrade-lets-a-writer-in",
        suite: "file",
        breaks: "a downgrade gives up the lock of the whole file, and a writer enters beside the reader",
        file: "crates/leasehold-file/src/kernel/lock_file.rs",
        old: "        let converted = whole_lock::try_lock(&self.file, Mode::Shared)?;\n",
        new: "        let converted = whole_lock::unlock(&self.file).is_ok();\n",
    },
    Bug {
        name: "file-fence-follows-the-clock",
        suite: "file",
        breaks: "a fence follows the clock of the request alone, so a waiter has a smaller one than the holder before it",
        file: "crates/leasehold-file/src/locking/attempt.rs",
        old: "Fence::after(Fence::new(counter.value()), request.proposal)",
        new: "Fence::after(None, request.proposal)",
    },
];
