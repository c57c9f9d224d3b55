use std::sync::Arc;

use super::Acquisition;
use crate::guard::Guard;
use crate::lease::ClientContext;
use crate::store::{AcquireError, Claim, Grant, Progress};
use crate::telemetry::AttemptEnd;
use crate::types::{Effect, Error, ErrorKind};

/// One call of [`Session::acquire`](crate::store::Session::acquire), with an owner of its own. Unless a guard takes the
/// lease over, dropping it releases in the background what the attempt has or may have.
pub(super) struct Attempt<'a> {
    acquisition: &'a Acquisition,
    claim: Arc<Claim>,
    /// How it ended, and whether the store may have something of it. `None` while it is under way.
    end: Option<(AttemptEnd, MayHave)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MayHave {
    Nothing,
    Lease,
}

impl<'a> Attempt<'a> {
    pub(super) fn begin(acquisition: &'a Acquisition) -> Self {
        Self {
            acquisition,
            claim: acquisition.claim(),
            end: None,
        }
    }

    pub(super) fn ask<'p>(
        &self,
        progress: &'p Progress,
    ) -> impl Future<Output = Result<Grant, AcquireError>> + Send + use<'a, 'p> {
        let (session, claim) = (&self.acquisition.context.session, Arc::clone(&self.claim));
        async move { session.acquire(&claim, progress).await }
    }

    /// Takes in the answer of the store. A grant becomes a guard, unless too little of the lease is left.
    pub(super) fn end(
        mut self,
        answer: Result<Grant, AcquireError>,
    ) -> Result<Guard, AcquireError> {
        let grant = match answer {
            Ok(grant) => grant,
            Err(AcquireError::Busy(busy)) => {
                self.end = Some((AttemptEnd::Busy, MayHave::Nothing));
                return Err(AcquireError::Busy(busy));
            }
            Err(AcquireError::Failed(error)) => {
                self.end = Some(match error.effect() {
                    Effect::Unknown => (AttemptEnd::Unknown, MayHave::Lease),
                    Effect::None => (AttemptEnd::Failed, MayHave::Nothing),
                });
                return Err(AcquireError::Failed(error));
            }
        };
        if let Some(owner) = grant.owner.filter(|owner| *owner != self.claim.owner) {
            self.claim = Arc::new(Claim::clone(&self.claim).with_owner(owner));
        }
        let age = self.acquisition.context.now().since(grant.term.since);
        let is_late = grant.term.ttl.is_some() && age >= self.claim.usable_ttl() / 3;
        if is_late {
            self.end = Some((AttemptEnd::Unknown, MayHave::Lease));
            return Err(AcquireError::Failed(self.acquisition.too_late()));
        }
        self.end = Some((AttemptEnd::Granted, MayHave::Lease));
        let Some(guard) = self.acquisition.guard(&self.claim, &grant) else {
            let error = Error::new(ErrorKind::Closed, "the client is being dropped");
            return Err(AcquireError::Failed(error));
        };
        self.acquisition.context.answered();
        self.end = Some((AttemptEnd::Granted, MayHave::Nothing));
        Ok(guard)
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let context = &self.acquisition.context;
        let (end, may_have) = self.end.unwrap_or((AttemptEnd::CutOff, MayHave::Lease));
        context.metrics.attempted(end);
        if may_have == MayHave::Lease {
            let (context, claim) = (Arc::clone(context), Arc::clone(&self.claim));
            let freeing = async move { free(&context, &claim).await };
            self.acquisition.context.clean_up(freeing);
        }
    }
}

async fn free(context: &ClientContext, claim: &Claim) {
    let outcome = context.session.release(claim).await;
    tracing::debug!(key = %claim.key, ?outcome, "freed an attempt that was not used");
}
