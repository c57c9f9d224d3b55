use std::sync::Arc;

use crate::claim::{Claim, Mode};
use crate::clock::BootInstant;
use crate::queue::Departure;
use crate::quorum::waiting::Waits;
use crate::quorum::waiting::vigil::Vigil;

/// Who waits longest at the client that gives a lock back.
///
/// Where the lock went to such a one the last time, its attempt is sent right behind the release, on
/// the same connections: each member hands over and grants at once, and the word "your turn" need not
/// be waited for. It is an attempt like any other. If somebody else is the next after all it is
/// refused, and the following release is a release alone.
#[derive(Debug)]
pub(crate) struct Heir {
    vigil: Arc<Vigil>,
    is_called: bool,
    /// When the lock was begun to be given back.
    since: BootInstant,
}

impl Waits {
    /// The heir to `claim`, which is about to be given back, called if it is expected to be the next.
    ///
    /// Of the same client: then it runs on the same thread, and so asks behind the release.
    pub(crate) fn heir(&self, claim: &Claim, departure: Departure) -> Option<Heir> {
        if claim.mode != Mode::Exclusive || departure != Departure::HandOver {
            return None;
        }
        let (vigil, is_called) = {
            let state = self.state();
            let vigil = state.vigils.first(&claim.key, claim.owner.client())?;
            (vigil, state.lately.stays(&claim.key))
        };
        let since = self.ambient.clock.now();
        if is_called {
            vigil.call(since);
        }
        Some(Heir {
            vigil,
            is_called,
            since,
        })
    }

    /// The release is over: members that handed over to the heir have said so.
    pub(crate) fn learn_from(&self, heir: &Heir) {
        if !heir.is_called {
            let stays = heir.vigil.is_told_since(heir.since);
            self.state().lately.note_heir(&heir.vigil.key, stays);
        }
    }

    /// An attempt in turn was refused: if it was made because it was called, somebody else was the next.
    pub(crate) fn learn_from_refusal(&self, vigil: &Vigil) {
        if vigil.answers_a_call() {
            self.state().lately.note_heir(&vigil.key, false);
        }
    }
}
