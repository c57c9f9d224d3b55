use std::ffi::OsString;
use std::time::Duration;

use crate::failure::Failure;
use crate::wish::Wish;

/// What is run while the locks of a wish are held.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) command: Vec<OsString>,
    /// Between SIGTERM and SIGKILL.
    pub(crate) grace: Duration,
    /// By how much SIGKILL comes before the deadline: what it takes until the last process is gone.
    pub(crate) margin: Duration,
    /// For how long the locks are kept from others, however soon the command ends.
    pub(crate) min_hold: Option<Duration>,
}

impl Work {
    /// The work, with the grace that was asked for, if that leaves time for renewals.
    pub(crate) fn new(
        command: &[OsString],
        wish: &Wish,
        grace: Option<Duration>,
    ) -> Result<Self, Failure> {
        let span = wish.shortest_hold();
        let grace = match grace {
            None => (span / 6).min(Duration::from_secs(5)),
            // Renewal begins at ttl/3 at the latest: a longer grace would leave it no time for a second try.
            Some(grace) if grace >= span / 3 => {
                let of = match span < wish.ttl {
                    true => "longest hold",
                    false => "TTL",
                };
                return Err(Failure::usage(format!(
                    "grace {grace:?} is too long: it must be less than a third of {span:?}, the {of}"
                )));
            }
            Some(grace) => grace,
        };
        Ok(Self {
            command: command.to_vec(),
            grace,
            margin: (span / 30).min(Duration::from_secs(1)),
            min_hold: None,
        })
    }

    /// Keeps the locks for at least `span`. A shortest hold that the longest one ends is no promise.
    pub(crate) fn keeping(mut self, span: Duration, wish: &Wish) -> Result<Self, Failure> {
        if let Some(most) = wish.max_hold.filter(|most| span > *most) {
            return Err(Failure::usage(format!(
                "min-hold {span:?} is longer than max-hold {most:?}"
            )));
        }
        self.min_hold = Some(span);
        Ok(self)
    }
}
