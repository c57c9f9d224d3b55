use crate::history::Wait;
use crate::rng::SimRng;

/// A foreign client that polls the first lock with the commands of other libraries, at all servers.
/// Its messages take no time.
#[derive(Debug)]
pub(crate) struct Poller {
    pub(crate) rng: SimRng,
    pub(crate) held: Option<Wait>,
}

impl Poller {
    pub(crate) fn new(rng: SimRng) -> Self {
        Self { rng, held: None }
    }
}
