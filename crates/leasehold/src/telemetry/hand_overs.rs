use std::time::Duration;

use metrics::Histogram;

use super::metric::HAND_OVER;
use super::registry::Registry;

/// Records how long hand-overs take, at the recorder that is installed when it is built. For stores that
/// notify waiters.
#[derive(Clone, Debug)]
pub struct HandOvers(Histogram);

impl HandOvers {
    /// Returns the [metric](HAND_OVER) for `store`, as its `Display` names it.
    pub fn new(store: &str) -> Self {
        let histogram =
            metrics::with_recorder(|recorder| Registry::new(recorder, store).histogram(&HAND_OVER));
        Self(histogram)
    }

    /// Records a grant that came `span` after the first notification of the waiter.
    pub fn took(&self, span: Duration) {
        self.0.record(span);
    }
}
