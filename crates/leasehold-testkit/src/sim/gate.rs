use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Something that is shut or open, and can be waited for. Whoever waits passes in the order of
/// coming, so that a seed means one history.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    open: AtomicBool,
    opened: Notify,
}

impl Gate {
    pub(crate) fn new(open: bool) -> Self {
        Self {
            open: AtomicBool::new(open),
            opened: Notify::new(),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    pub(crate) fn shut(&self) {
        self.open.store(false, Ordering::Release);
    }

    pub(crate) fn open(&self) {
        self.open.store(true, Ordering::Release);
        self.opened.notify_waiters();
    }

    pub(crate) async fn pass(&self) {
        while !self.is_open() {
            // Nothing runs between the look and the wait: there is one thread, and no await.
            self.opened.notified().await;
        }
    }
}
