//! Waits for what a client that ends has left to do.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use leasehold::clock::within;

use super::shared::Shared;
use super::state::DriverState;

/// How long a client that ends waits for members that are slower than a majority.
const REPLY_MAX: Duration = Duration::from_millis(40);

/// How long it waits for another connection to members that are owed a release.
const RECONNECT_MAX: Duration = Duration::from_millis(250);

impl Shared {
    /// Resolves when nothing is in flight at members that answer. A member that takes longer than
    /// [`REPLY_MAX`] is not waited for once a majority has decided and the kernel has what was sent. If locks may stay
    /// taken, since their releases are not confirmed, members get [`RECONNECT_MAX`] more to connect and to confirm them.
    pub(super) async fn idle(&self) {
        // The future that is to advance the driver may not be polled.
        self.thread.notify_one();
        self.until(|state| state.is_idle() || state.is_handed_over())
            .await;
        let end = self.clock().now() + REPLY_MAX;
        let replies = within(self.clock(), end, self.until(DriverState::is_idle));
        if replies.await.is_none() {
            self.update(DriverState::repeat_releases);
            self.until(|state| state.is_idle() || state.is_handed_over())
                .await;
        }
        let end = self.clock().now() + RECONNECT_MAX;
        let confirmed = self.until(|state| state.unconfirmed_releases(self.now()) == 0);
        let _ = within(self.clock(), end, confirmed).await;
    }

    /// Resolves when the engine has all that callers submitted, and `condition` holds.
    async fn until(&self, condition: impl Fn(&DriverState) -> bool) {
        poll_fn(|context| {
            self.look(|state| {
                if condition(state) && self.submissions().is_empty() {
                    return Poll::Ready(());
                }
                state.wait_for_change(context.waker());
                Poll::Pending
            })
        })
        .await;
    }
}
