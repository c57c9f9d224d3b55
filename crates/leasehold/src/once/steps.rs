//! The steps of a request: read, acquire the lock, open the record, write that it has begun.

use std::time::Duration;

use super::result::OnceResult;
use super::run::OnceRun;
use super::state::OnceState;
use super::{Once, OnceStart};
use crate::guard::Guard;
use crate::store::{RECORD_MEMORY, RecordWrite, Written};
use crate::types::{
    Error, ErrorKind, MemberHealth, MemberStatus, exact_span, requests_run_in, rough_span,
};

impl Once {
    /// Rejects invalid settings before the lock is acquired.
    pub(crate) async fn check(&self) -> Result<(), Error> {
        let key = self.key()?;
        RecordWrite::check(&[], self.retention).map_err(|error| error.with_key(key))?;
        let health = self.client.health().await;
        let checked = health.and_then(|health| {
            refuse_forgetful_members(&health)?;
            refuse_young_members(&health, self.retention)
        });
        checked.map_err(|error| error.with_key(key))
    }

    /// Like [`check`](Self::check), but returns a result that is certainly there, even if the store cannot run the
    /// request.
    pub(crate) async fn check_unless_done(&self) -> Result<Option<OnceResult>, Error> {
        let Err(refusal) = self.check().await else {
            return Ok(None);
        };
        let result = match refusal.kind() {
            ErrorKind::Unsupported | ErrorKind::Untrusted => self.settled_result().await,
            _ => Ok(None),
        };
        result.ok().flatten().map(Some).ok_or(refusal)
    }

    /// Returns the result if it is certainly there. If the store does not answer, the read is repeated
    /// under the lock.
    pub(crate) async fn first_look(&self) -> Result<Option<OnceResult>, Error> {
        if let Some(result) = self.check_unless_done().await? {
            return Ok(Some(result));
        }
        match self.settled_result().await {
            Err(error) if error.is_unreachable() => Ok(None),
            looked => looked,
        }
    }

    pub(crate) async fn settled_result(&self) -> Result<Option<OnceResult>, Error> {
        let record = self.client.record(self.key()?).lasting(self.retention);
        let reading = record.read().await?;
        match reading.written {
            Some(written) if reading.settled => self.result_of(&written),
            _ => Ok(None),
        }
    }

    /// Opens the record under the lock, and begins unless the request is done.
    pub(crate) async fn under(&self, guard: Guard) -> Result<OnceStart, Error> {
        let record = guard.record().lasting(self.retention);
        // This value is settled: every later caller finds it too.
        let written = record.open().await?;
        if let Some(written) = &written
            && let Some(result) = self.result_of(written)?
        {
            guard.release_quietly().await;
            return Ok(OnceStart::Done(result));
        }
        let started = OnceState::Started(self.payload).encode();
        // At most as long as a result is kept: otherwise, on a member that missed the result, this value
        // would show again after the result has expired.
        let kept_for = self.retention.min(RECORD_MEMORY);
        record.write(started, kept_for).await?;
        Ok(OnceStart::Run(OnceRun::new(
            self.payload,
            self.retention,
            guard,
        )))
    }

    pub(crate) async fn in_progress(&self) -> Result<OnceStart, Error> {
        let holders = match self.client.holders(self.key()?).await {
            // A store may keep records and show no holders.
            Err(error) if error.kind() == ErrorKind::Unsupported => Vec::new(),
            holders => holders?,
        };
        Ok(OnceStart::InProgress(holders.into_iter().next()))
    }

    /// Returns the result in `written`, if it has one, and if it belongs to this request.
    fn result_of(&self, written: &Written) -> Result<Option<OnceResult>, Error> {
        let key = self.key()?;
        let state = OnceState::decode(&written.bytes).map_err(|error| error.with_key(key))?;
        let (payload, result) = match state {
            OnceState::Vacant => return Ok(None),
            OnceState::Started(payload) => (payload, None),
            OnceState::Done {
                payload,
                fence,
                result,
            } => {
                let result = OnceResult::new(result, fence, written.remaining);
                (payload, Some(result))
            }
        };
        if payload == self.payload {
            return Ok(result);
        }
        let text = format!(
            "the request was made with another payload (SHA-256 {}, not {}): a name belongs to one \
             request",
            begin_of(&payload),
            begin_of(&self.payload)
        );
        Err(Error::new(ErrorKind::InvalidInput, text).with_key(key))
    }
}

/// On a quorum, every member that answers must be durable: a result must outlive its restart. A member that
/// does not answer has no vote later either, unless it turns out to be durable.
fn refuse_forgetful_members(health: &[MemberHealth]) -> Result<(), Error> {
    if health.len() < 2 {
        return Ok(());
    }
    let forgetful: Vec<String> = health.iter().filter_map(forgetful).collect();
    if forgetful.is_empty() {
        return Ok(());
    }
    let text = format!(
        "a result must outlive restarts, but {} of {} servers are not durable: {}; see `leasehold doctor`",
        forgetful.len(),
        health.len(),
        forgetful.join(", ")
    );
    Err(Error::new(ErrorKind::Unsupported, text))
}

/// If a majority of the members is too young to deny a result, no wait for the lock helps.
fn refuse_young_members(health: &[MemberHealth], retention: Duration) -> Result<(), Error> {
    match requests_run_in(health, retention) {
        None | Some(Duration::ZERO) => Ok(()),
        Some(left) => {
            let statuses = health
                .iter()
                .filter_map(|member| member.status.as_ref().ok());
            let remedy = match statuses.clone().any(MemberStatus::may_be_stated_new) {
                true => {
                    "; if all were new when a client initialized the quorum, `leasehold init` ends that"
                }
                false => "",
            };
            let silent = health.iter().filter(|member| member.status.is_err());
            let silent: Vec<&str> = silent.map(|member| member.id.address()).collect();
            let who = match silent.join(", ") {
                silent if silent.is_empty() => "they".into(),
                silent => format!("no answer from {silent}, and others"),
            };
            let text = format!(
                "too few servers can deny a result: {who} lost their data, joined or became durable less than \
                 {} ago; enough of them can in {}{remedy}",
                exact_span(retention),
                rough_span(left)
            );
            Err(Error::new(ErrorKind::Untrusted, text))
        }
    }
}

/// Describes the member for the error, if it answers and is not durable.
fn forgetful(member: &MemberHealth) -> Option<String> {
    let status = member.status.as_ref().ok()?;
    let note = match status.durable {
        true => " (only after its next restart)",
        false => "",
    };
    (!status.will_remember()).then(|| format!("{}{note}", member.id))
}

/// Enough of a hash to tell two hashes apart.
fn begin_of(hash: &[u8]) -> String {
    hash.iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
