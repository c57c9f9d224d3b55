use std::time::Duration;

use tokio::time::Instant;

/// The one true time of a world, which no part of it can read: spans since it began. It is the
/// virtual time of the runtime and moves in whole milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeline {
    start: Instant,
}

impl Timeline {
    #[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
    pub(crate) fn begin() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
    pub(crate) fn now(&self) -> Duration {
        Instant::now() - self.start
    }

    #[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
    pub(crate) async fn sleep_until(&self, at: Duration) {
        tokio::time::sleep_until(self.start + at).await;
    }

    pub(crate) async fn sleep(&self, span: Duration) {
        self.sleep_until(self.now() + span).await;
    }
}
