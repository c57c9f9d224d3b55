//! What a member is asked about a record, and whether its word counts.

use std::sync::Arc;
use std::time::Duration;

use crate::BoxFuture;
use crate::error::{Error, ErrorKind};
use crate::optional;
use crate::quorum::link::Link;
use crate::records::{RecordKey, Recorded, Records};

impl Link {
    /// Asks the member about `record`; an answer that does not count is an error.
    pub(crate) async fn record<T>(
        self: &Arc<Self>,
        record: &RecordKey,
        question: impl for<'r> FnOnce(
            &'r dyn Records,
            &'r RecordKey,
        ) -> BoxFuture<'r, Result<Recorded<T>, Error>>,
    ) -> Result<T, Error> {
        self.may_ask(LIMIT).await?;
        if record.lasting.is_some() && !self.roster.is_durable(self.place) {
            return Err(self.forgetful());
        }
        let records = optional::records(&*self.member)?;
        let sent = self.ambient.clock.now();
        let answer = self.request(LIMIT, question(records, record)).await?;
        if let Some(sample) = &answer.sample {
            self.roster.sample(self.place, sample, sent);
        }
        let incarnation = answer.sample.as_ref().map(|sample| &sample.incarnation);
        let mut counts = self.roster.counts(self.place, sent, incarnation);
        if let Some(retention) = record.lasting {
            counts = counts.and_then(|()| self.roster.remembers(self.place, sent, retention));
        }
        match counts {
            Ok(()) => Ok(answer.answer),
            Err(distrust) => Err(self.refusal(&distrust).with_unknown_effect()),
        }
    }

    fn forgetful(&self) -> Error {
        let text = "does not keep what it acknowledges across a restart, and this must outlive one";
        Error::new(ErrorKind::Unsupported, text).with_store(self.member.id().as_str())
    }
}

/// A record may be long, and a durable member waits for its disk.
const LIMIT: Duration = Duration::from_secs(2);
