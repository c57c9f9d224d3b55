//! Leases and waits that continue: many of them in one call of a script.

use std::sync::Arc;

use leasehold::member::FenceConfirmation;
use leasehold::store::LockRequest;
use leasehold::{Error, Fence, LostReason, Mode};
use leasehold_quorum::{Lease, LeaseState, Reply};

use super::acquire::{read_fence, read_refusal};
use super::command::{Codec, call, slot};
use super::expiry::milliseconds;
use super::failure::{invalid_response, split_error};
use super::lock_value::entry;
use crate::resp::{CommandWriter, Value};
use crate::scripts::{CONFIRM_FENCE, HEARTBEAT, RENEW, REPAIR, Script};

/// How many locks one call handles. The server does nothing else during that time.
const AT_ONCE: usize = 64;

/// Returns how many calls a request for this number of locks takes.
pub(super) fn calls(locks: usize) -> usize {
    locks.div_ceil(AT_ONCE)
}

pub(super) fn write_renewals(codec: &Codec, leases: &[Lease], out: &mut CommandWriter<'_>) {
    for leases in leases.chunks(AT_ONCE) {
        let lock_requests = leases.iter().map(|lease| &lease.lock_request);
        call_for(codec, &RENEW, lock_requests, out);
        for Lease {
            lock_request,
            slot: own,
            ..
        } in leases
        {
            out.arg(entry(lock_request.owner, lock_request.mode));
            out.number(milliseconds(lock_request.ttl));
            slot(*own, out);
        }
    }
}

pub(super) fn read_renewals(codec: &Codec, leases: &[Lease], answers: &[Value]) -> Reply {
    let read = |answer: Result<&Value, Error>| match answer {
        Ok(Value::Integer(1)) => LeaseState::Renewed,
        Ok(Value::Integer(0)) => LeaseState::Lost(LostReason::Gone),
        Ok(Value::Integer(-1)) => LeaseState::Lost(LostReason::Taken),
        Ok(Value::Integer(-2)) => LeaseState::Lost(LostReason::Broken),
        Ok(_) => LeaseState::Failed(invalid_response("a renewal")),
        Err(error) => LeaseState::Failed(error),
    };
    Reply::Renewed(each(codec, leases.len(), answers, read))
}

pub(super) fn write_heartbeat(
    codec: &Codec,
    waiters: &[Arc<LockRequest>],
    out: &mut CommandWriter<'_>,
) {
    let mut rest = waiters;
    loop {
        let (part, behind) = rest.split_at(rest.len().min(AT_ONCE));
        call_for(codec, &HEARTBEAT, part.iter(), out);
        out.arg(codec.client.to_string());
        for lock_request in part {
            out.arg(entry(lock_request.owner, lock_request.mode));
        }
        if behind.is_empty() {
            return;
        }
        rest = behind;
    }
}

pub(super) fn read_heartbeat(
    codec: &Codec,
    waiters: &[Arc<LockRequest>],
    answers: &[Value],
) -> Result<Reply, Error> {
    for answer in answers {
        codec.accepted(answer)?;
    }
    let mut lock_requests = waiters.iter();
    // If a lock has an error, its waiter is reported without a position: it asks, and learns the error.
    let read = |answer: Result<&Value, Error>| {
        let parts = answer.ok().and_then(Value::as_array);
        let refusal = lock_requests.next().zip(parts);
        let refusal =
            refusal.and_then(|(lock_request, parts)| read_refusal(lock_request, parts).ok());
        refusal.unwrap_or_default()
    };
    Ok(Reply::Waiting(each(codec, waiters.len(), answers, read)))
}

pub(super) fn write_confirm(
    codec: &Codec,
    lock_request: &LockRequest,
    fence: Fence,
    out: &mut CommandWriter<'_>,
) {
    call(&CONFIRM_FENCE, 1, out);
    codec.names(lock_request).write_all(out);
    out.arg(entry(lock_request.owner, lock_request.mode))
        .number(fence.get());
}

pub(super) fn read_confirm(codec: &Codec, answer: &Value) -> Result<Reply, Error> {
    Ok(Reply::Confirmed(match codec.accepted(answer)? {
        Value::Integer(1) => FenceConfirmation::Confirmed,
        Value::Integer(0) => FenceConfirmation::NotHeld,
        Value::Array(taken) if taken.len() == 1 => {
            FenceConfirmation::Conflict(read_fence(&taken[0])?)
        }
        _ => return Err(invalid_response("the confirmation of a fence")),
    }))
}

/// Returns the leases that a repair can restore.
pub(super) fn exclusive(leases: &[Lease]) -> impl Iterator<Item = &Lease> {
    let is_exclusive = |lease: &&Lease| lease.lock_request.mode == Mode::Exclusive;
    leases.iter().filter(is_exclusive)
}

pub(super) fn write_repairs(codec: &Codec, leases: &[Lease], out: &mut CommandWriter<'_>) {
    let leases: Vec<_> = exclusive(leases).collect();
    for leases in leases.chunks(AT_ONCE) {
        let lock_requests = leases.iter().map(|lease| &lease.lock_request);
        call_for(codec, &REPAIR, lock_requests, out);
        for Lease {
            lock_request,
            fence,
            ..
        } in leases
        {
            out.arg(lock_request.owner.to_ascii());
            out.number(milliseconds(lock_request.ttl))
                .number(fence.get());
        }
    }
}

pub(super) fn read_repairs(
    codec: &Codec,
    leases: &[Lease],
    answers: &[Value],
) -> Result<Reply, Error> {
    let count = exclusive(leases).count();
    let restored = each(codec, count, answers, |answer| match answer {
        Ok(Value::Integer(restored)) => Ok(*restored == 1),
        Ok(_) => Err(invalid_response("a repair")),
        Err(error) => Err(error),
    });
    let mut restored = restored.into_iter();
    let in_order = leases.iter().map(|lease| match lease.lock_request.mode {
        Mode::Exclusive => restored.next().unwrap_or(Ok(false)),
        Mode::Shared | Mode::Permit(_) => Ok(false),
    });
    Ok(Reply::Repaired(in_order.collect::<Result<_, _>>()?))
}

/// Begins a call for the locks of `requests`.
fn call_for<'c>(
    codec: &Codec,
    script: &Script,
    lock_requests: impl ExactSizeIterator<Item = &'c Arc<LockRequest>>,
    out: &mut CommandWriter<'_>,
) {
    call(script, lock_requests.len(), out);
    for lock_request in lock_requests {
        codec.names(lock_request).write_all(out);
    }
}

/// Reads the answers for `count` locks, in the order of the locks. An error of a call applies to all its
/// locks. A text is the error of one lock.
fn each<T>(
    codec: &Codec,
    count: usize,
    answers: &[Value],
    mut read: impl FnMut(Result<&Value, Error>) -> T,
) -> Vec<T> {
    let mut results = Vec::with_capacity(count);
    for at in 0..calls(count) {
        let locks = (count - results.len()).min(AT_ONCE);
        match answers.get(at) {
            Some(Value::Array(parts)) if parts.len() == locks => {
                results.extend(parts.iter().map(|part| read(one(codec, part))));
            }
            other => {
                let failed = || match other {
                    Some(Value::Error { code, message }) => {
                        codec.refused(code, message).with_unknown_effect()
                    }
                    _ => invalid_response("a script"),
                };
                results.extend((0..locks).map(|_| read(Err(failed()))));
            }
        }
    }
    results
}

/// Reads the answer for one of several locks.
fn one<'v>(codec: &Codec, answer: &'v Value) -> Result<&'v Value, Error> {
    match answer.as_text() {
        Some(error) => {
            let (code, message) = split_error(error);
            Err(codec.refused(code, message).with_unknown_effect())
        }
        None => codec.accepted(answer),
    }
}
