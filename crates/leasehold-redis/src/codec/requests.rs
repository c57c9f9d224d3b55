use leasehold::Error;
use leasehold_quorum::{Reply, Request};

use super::UsualRequest;
use super::command::Codec;
use super::failure::invalid_response;
use super::{acquire, lease, member_record, record, status};
use crate::resp::{CommandWriter, Value};
use crate::scripts::{self as script, Script};

/// What the answers to a request mean.
#[derive(Debug)]
pub enum Decoded {
    /// A reply for the engine.
    Reply(Reply),
    /// The server does not know this script: load it, and send the request again.
    NoScript(&'static Script),
}

impl Codec {
    /// Writes the commands of a request, and returns their number. On an error it writes nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](leasehold::ErrorKind::InvalidInput) if no server could carry the
    /// request out.
    pub fn encode(&self, request: &Request, out: &mut Vec<u8>) -> Result<usize, Error> {
        let mut writer = CommandWriter::new(out);
        let out = &mut writer;
        match request {
            Request::TryAcquire {
                lock_request,
                proposal,
                expire,
            } => acquire::write_try(self, lock_request, *proposal, *expire, out)?,
            Request::DrawFence { lock_request } => acquire::write_draw(self, lock_request, out),
            Request::Acquire {
                lock_request,
                proposal,
                position,
                preferred,
            } => acquire::write(self, lock_request, *proposal, *position, *preferred, out)?,
            Request::Free { lock_request } => acquire::write_free(self, lock_request, out),
            Request::Release {
                lock_request,
                requeue,
                successor,
            } => acquire::write_release(self, lock_request, *requeue, successor.as_ref(), out)?,
            Request::Dequeue { lock_request } => acquire::write_dequeue(self, lock_request, out),
            Request::Renew(leases) => lease::write_renewals(self, leases, out),
            Request::Heartbeat(waiters) => lease::write_heartbeat(self, waiters, out),
            Request::ConfirmFence {
                lock_request,
                fence,
            } => lease::write_confirm(self, lock_request, *fence, out),
            Request::Repair(leases) => lease::write_repairs(self, leases, out),
            Request::Record(key, action) => record::write(self, key, action, out),
            Request::Status => status::write(out),
            Request::WriteMemberRecord(edit) => member_record::write(edit, out)?,
            Request::RecordObservation(seen) => member_record::write_observation(seen, out)?,
        }
        Ok(writer.finish())
    }

    /// Returns how many answers a request gets: one for each of its commands.
    pub fn answers(request: &Request) -> usize {
        match request {
            Request::TryAcquire { expire, .. } => acquire::try_commands(*expire),
            Request::Renew(leases) => lease::calls(leases.len()),
            Request::Heartbeat(waiters) => lease::calls(waiters.len()).max(1),
            Request::Repair(leases) => lease::calls(lease::exclusive(leases).count()),
            Request::Status => status::COMMANDS,
            Request::RecordObservation(seen) => usize::from(!seen.is_empty()),
            Request::DrawFence { .. }
            | Request::Acquire { .. }
            | Request::Free { .. }
            | Request::Release { .. }
            | Request::Dequeue { .. }
            | Request::ConfirmFence { .. }
            | Request::Record(..)
            | Request::WriteMemberRecord(_) => 1,
        }
    }

    /// Reads the answers to a request, as many as [`Codec::answers`] says.
    pub fn decode(&self, request: &Request, answers: &[Value]) -> Decoded {
        decoded(script_of(request), answers, || self.read(request, answers))
    }

    /// Reads the answers to a usual request.
    pub(crate) fn decode_usual(&self, request: UsualRequest, answers: &[Value]) -> Decoded {
        decoded(request.script(), answers, || {
            self.read_usual(request, answers)
        })
    }

    fn read(&self, request: &Request, answers: &[Value]) -> Result<Reply, Error> {
        if let Some(usual) = UsualRequest::of(request) {
            return self.read_usual(usual, answers);
        }
        let first = || answers.first().ok_or_else(|| invalid_response("a request"));
        match request {
            Request::DrawFence { .. } => {
                let fence = acquire::read_fence(self.accepted(first()?)?)?;
                Ok(Reply::Granted { fence, slot: None })
            }
            Request::Acquire { lock_request, .. } => acquire::read(self, lock_request, first()?),
            Request::Release { successor, .. } => {
                acquire::read_release(self, successor.as_ref(), first()?)
            }
            Request::Dequeue { .. } => acquire::read_dequeued(self, first()?),
            Request::Renew(leases) => Ok(lease::read_renewals(self, leases, answers)),
            Request::Heartbeat(waiters) => lease::read_heartbeat(self, waiters, answers),
            Request::ConfirmFence { .. } => lease::read_confirm(self, first()?),
            Request::Repair(leases) => lease::read_repairs(self, leases, answers),
            Request::Record(_, action) => record::read(self, action, first()?),
            Request::Status => {
                status::read(answers, &self.user).map(|status| Reply::Status(Box::new(status)))
            }
            Request::WriteMemberRecord(_) => member_record::read_written(self, first()?),
            Request::RecordObservation(seen) if seen.is_empty() => Ok(Reply::Recorded(true)),
            Request::RecordObservation(_) => member_record::read_observed(self, first()?),
            Request::TryAcquire { .. } | Request::Free { .. } => Err(invalid_response("a request")),
        }
    }

    fn read_usual(&self, request: UsualRequest, answers: &[Value]) -> Result<Reply, Error> {
        match (request, answers) {
            (UsualRequest::TryAcquire { proposal, .. }, _) => {
                acquire::read_try(self, proposal, answers)
            }
            (UsualRequest::Free, [answer, ..]) => acquire::read_freed(self, answer),
            (UsualRequest::Free, []) => Err(invalid_response("a request")),
        }
    }
}

fn decoded(
    script: Option<&'static Script>,
    answers: &[Value],
    read: impl FnOnce() -> Result<Reply, Error>,
) -> Decoded {
    match script {
        Some(script) if answers.iter().any(|answer| answer.is_error("NOSCRIPT")) => {
            Decoded::NoScript(script)
        }
        _ => Decoded::Reply(read().unwrap_or_else(Reply::Failed)),
    }
}

impl UsualRequest {
    /// Returns how many answers the request gets.
    pub(crate) fn answers(self) -> usize {
        match self {
            Self::TryAcquire { expire, .. } => acquire::try_commands(expire),
            Self::Free => 1,
        }
    }

    fn script(self) -> Option<&'static Script> {
        match self {
            Self::TryAcquire { .. } => None,
            Self::Free => Some(&script::FREE),
        }
    }
}

/// Returns the script that a request calls.
pub fn script_of(request: &Request) -> Option<&'static Script> {
    Some(match request {
        Request::TryAcquire { .. } | Request::Status => return None,
        Request::DrawFence { .. } => &script::DRAW_FENCE,
        Request::Acquire { .. } => &script::ACQUIRE,
        Request::Free { .. } => &script::FREE,
        Request::Release { .. } => &script::RELEASE,
        Request::Dequeue { .. } => &script::DEQUEUE,
        Request::Renew(_) => &script::RENEW,
        Request::Heartbeat(_) => &script::HEARTBEAT,
        Request::ConfirmFence { .. } => &script::CONFIRM_FENCE,
        Request::Repair(_) => &script::REPAIR,
        Request::Record(_, action) => record::script(action),
        Request::WriteMemberRecord(_) => &script::MEMBER_RECORD_WRITE,
        Request::RecordObservation(_) => &script::MEMBER_RECORD_OBSERVE,
    })
}
