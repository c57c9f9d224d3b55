//! Taking and releasing a lock.

use std::time::Duration;

use leasehold::member::PermitSlot;
use leasehold::store::{Busy, LockRequest};
use leasehold::{Error, ErrorKind, Fence, Mode};
use leasehold_quorum::{Position, Refusal, Reply, Requeue, Successor};

use super::command::{Codec, call, slot};
use super::expiry::milliseconds;
use super::failure::{invalid_response, is_wrong_type};
use super::lock_value::{LockValue, entry};
use super::names::{COUNTER, REST_MS};
use crate::resp::{CommandWriter, Value};
use crate::scripts::{ACQUIRE, DEQUEUE, DRAW_FENCE, FREE, RELEASE};

pub(super) fn try_commands(expire: bool) -> usize {
    2 + usize::from(expire)
}

/// The lease comes first. Until it ends, no other client draws a fence, so the counter that follows is
/// above all earlier fences. In the other order a later lease could have a smaller fence.
pub(super) fn write_try(
    codec: &Codec,
    lock_request: &LockRequest,
    proposal: u64,
    expire: bool,
    out: &mut CommandWriter<'_>,
) -> Result<(), Error> {
    check(lock_request, proposal, None)?;
    let names = codec.names(lock_request);
    out.fixed("*7\r\n$3\r\nSET\r\n").arg(names.lock());
    out.arg(lock_request.owner.to_ascii());
    out.words("$2\r\nNX\r\n$3\r\nGET\r\n$2\r\nPX\r\n");
    out.number(milliseconds(lock_request.ttl));
    names.write(out.fixed("*6\r\n$4\r\nZADD\r\n"), "fence:0");
    out.words("$2\r\nGT\r\n$2\r\nCH\r\n");
    out.number(proposal).arg(COUNTER);
    if expire {
        names.write(out.command("PEXPIRE"), "fence:0");
        out.number(REST_MS);
    }
    Ok(())
}

pub(super) fn read_try(codec: &Codec, proposal: u64, answers: &[Value]) -> Result<Reply, Error> {
    let [set, raised, ..] = answers else {
        return Err(invalid_response("an attempt"));
    };
    match set {
        Value::Null => {}
        // Also the own owner, if an earlier sending took the lock. The lease would count from that sending, so
        // the engine asks again with a script.
        Value::Bytes(value) => {
            let busy = busy(value);
            return Ok(Reply::Busy(Refusal {
                busy,
                ..Refusal::default()
            }));
        }
        Value::Error { code, message } if is_wrong_type(code, message) => {
            return Err(foreign_type("value that is not a string"));
        }
        Value::Error { code, message } => return Err(codec.refused(code, message)),
        _ => return Err(invalid_response("SET")),
    }
    match codec.accepted(raised)? {
        Value::Integer(1) => {
            let fence = Fence::new(proposal).ok_or_else(|| invalid_response("ZADD"))?;
            Ok(Reply::Granted { fence, slot: None })
        }
        Value::Integer(0) => Ok(Reply::GrantedBehind),
        _ => Err(invalid_response("ZADD")),
    }
}

pub(super) fn write_draw(codec: &Codec, lock_request: &LockRequest, out: &mut CommandWriter<'_>) {
    call(&DRAW_FENCE, 1, out);
    codec.names(lock_request).write_all(out);
    // The server needs a proposal only if it lost the counter in the meantime.
    out.arg(entry(lock_request.owner, lock_request.mode));
    out.number(lock_request.owner.since().as_micros() + 1);
}

pub(super) fn write(
    codec: &Codec,
    lock_request: &LockRequest,
    proposal: u64,
    position: Position,
    preferred: Option<PermitSlot>,
    out: &mut CommandWriter<'_>,
) -> Result<(), Error> {
    check(lock_request, proposal, preferred)?;
    call(&ACQUIRE, 1, out);
    codec.names(lock_request).write_all(out);
    write_request(lock_request, proposal, position, preferred, out);
    Ok(())
}

fn write_request(
    lock_request: &LockRequest,
    proposal: u64,
    position: Position,
    preferred: Option<PermitSlot>,
    out: &mut CommandWriter<'_>,
) {
    out.arg(entry(lock_request.owner, lock_request.mode));
    out.number(milliseconds(lock_request.ttl)).number(proposal);
    match position {
        Position::None => out.arg(""),
        Position::Ticket(ticket) => out.number(ticket),
        Position::Barging => out.arg("barging"),
    };
    slot(preferred, out);
}

pub(super) fn read(
    codec: &Codec,
    lock_request: &LockRequest,
    answer: &Value,
) -> Result<Reply, Error> {
    let parts = codec.accepted(answer)?.as_array();
    match parts {
        Some([Value::Integer(1), ..]) => {
            let (fence, slot) = read_grant(lock_request, answer)?;
            Ok(Reply::Granted { fence, slot })
        }
        Some(parts) => Ok(Reply::Busy(read_refusal(lock_request, parts)?)),
        None => Err(invalid_response("the script of an attempt")),
    }
}

/// Reads `{1, fence, permit, ...}`.
fn read_grant(
    lock_request: &LockRequest,
    answer: &Value,
) -> Result<(Fence, Option<PermitSlot>), Error> {
    let Some([Value::Integer(1), fence, slot, ..]) = answer.as_array() else {
        return Err(invalid_response("the script of an attempt"));
    };
    let fence = read_fence(fence)?;
    let Mode::Permit(permits) = lock_request.mode else {
        return Ok((fence, None));
    };
    let number = slot.as_integer().and_then(|slot| u32::try_from(slot).ok());
    let slot = number.and_then(|number| PermitSlot::new(number, permits).ok());
    let slot = slot.ok_or_else(|| invalid_response("the script of an attempt"))?;
    Ok((fence, Some(slot)))
}

/// Reads `{turn, value, left, position, ask again, cannot notify}`.
pub(super) fn read_refusal(lock_request: &LockRequest, parts: &[Value]) -> Result<Refusal, Error> {
    let [
        Value::Integer(turn),
        value,
        left,
        position,
        ask_again,
        Value::Integer(cannot_notify),
    ] = parts
    else {
        return Err(invalid_response("the script of an attempt"));
    };
    let value = match value {
        Value::Bytes(value) => value.as_slice(),
        Value::Null => b"leasehold:next",
        _ => return Err(invalid_response("the script of an attempt")),
    };
    match (LockValue::read(value), lock_request.mode) {
        (LockValue::OtherType(name), _) => return Err(foreign_type(&name)),
        (LockValue::Permits(others), Mode::Permit(permits)) if others != permits => {
            return Err(Error::permits_differ(others, permits));
        }
        _ => {}
    }
    let mut busy = busy(value);
    busy.remaining = duration(left);
    busy.position = position
        .as_integer()
        .and_then(|position| position.try_into().ok());
    busy.position = busy.position.filter(|position| *position > 0);
    busy.cannot_notify = *cannot_notify == 1;
    Ok(Refusal {
        busy,
        ask_again: duration(ask_again),
        turn: *turn == 2,
    })
}

/// What the value of a lock key says about the holder.
fn busy(value: &[u8]) -> Busy {
    let mut busy = Busy::default();
    if let LockValue::Owner(owner) = LockValue::read(value) {
        busy.holder = Some(owner);
    }
    busy
}

pub(super) fn write_free(codec: &Codec, lock_request: &LockRequest, out: &mut CommandWriter<'_>) {
    let names = codec.names(lock_request);
    out.fixed("*6\r\n$7\r\nEVALSHA\r\n").arg(FREE.sha1());
    out.words("$1\r\n2\r\n").arg(names.lock());
    names.write(out, "queue");
    out.arg(lock_request.owner.to_ascii());
}

pub(super) fn read_freed(codec: &Codec, answer: &Value) -> Result<Reply, Error> {
    match codec.accepted(answer)? {
        Value::Integer(1) => Ok(Reply::Released {
            freed: true,
            successor: None,
        }),
        Value::Integer(0) => Ok(Reply::Contended),
        _ => Err(invalid_response("the script that frees a lock")),
    }
}

pub(super) fn write_release(
    codec: &Codec,
    lock_request: &LockRequest,
    requeue: Option<Requeue>,
    successor: Option<&Successor>,
    out: &mut CommandWriter<'_>,
) -> Result<(), Error> {
    if let Some(successor) = successor {
        check(
            &successor.lock_request,
            successor.proposal,
            successor.preferred,
        )?;
    }
    call(&RELEASE, 1, out);
    codec.names(lock_request).write_all(out);
    out.arg(entry(lock_request.owner, lock_request.mode));
    match requeue {
        Some(next) => out
            .arg(entry(next.owner, lock_request.mode))
            .number(next.ticket),
        None => out.arg("").arg(""),
    };
    out.number(milliseconds(Codec::FOREIGN_GAP));
    if let Some(next) = successor {
        let position = Position::Ticket(next.ticket);
        write_request(
            &next.lock_request,
            next.proposal,
            position,
            next.preferred,
            out,
        );
    }
    Ok(())
}

pub(super) fn read_release(
    codec: &Codec,
    successor: Option<&Successor>,
    answer: &Value,
) -> Result<Reply, Error> {
    let (freed, granted) = match codec.accepted(answer)?.as_array() {
        Some([Value::Integer(freed), _untold]) => (freed, None),
        Some([Value::Integer(freed), _untold, granted]) => (freed, Some(granted)),
        _ => return Err(invalid_response("the script of a release")),
    };
    let successor = match (granted, successor) {
        (None, _) => None,
        (Some(granted), Some(successor)) => Some(read_grant(&successor.lock_request, granted)?),
        (Some(_), None) => return Err(invalid_response("the script of a release")),
    };
    Ok(Reply::Released {
        freed: *freed == 1,
        successor,
    })
}

pub(super) fn write_dequeue(
    codec: &Codec,
    lock_request: &LockRequest,
    out: &mut CommandWriter<'_>,
) {
    call(&DEQUEUE, 1, out);
    codec.names(lock_request).write_all(out);
    out.arg(entry(lock_request.owner, lock_request.mode));
}

pub(super) fn read_dequeued(codec: &Codec, answer: &Value) -> Result<Reply, Error> {
    match codec.accepted(answer)? {
        Value::Integer(0 | 1) => Ok(Reply::Dequeued),
        _ => Err(invalid_response("the script that ends a wait")),
    }
}

/// Reads a fence. Servers may write a score with an exponent; it is exact up to [`Fence::MAX`].
pub(super) fn read_fence(drawn: &Value) -> Result<Fence, Error> {
    let score = drawn
        .as_number()
        .ok_or_else(|| invalid_response("ZINCRBY"))?;
    let is_exact = score.fract() == 0.0 && (1.0..=Fence::MAX.get() as f64).contains(&score);
    let fence = is_exact.then(|| Fence::new(score as u64)).flatten();
    fence.ok_or_else(|| {
        let text = format!(
            "the counter of this lock is {score}, which is no fence (1 to {}): delete the record \
             leasehold:fence:… while the lock is free",
            Fence::MAX
        );
        Error::new(ErrorKind::Corrupt, text).with_unknown_effect()
    })
}

/// Refuses, before anything is sent, values that would lead to wrong fences or permits.
fn check(
    lock_request: &LockRequest,
    proposal: u64,
    preferred: Option<PermitSlot>,
) -> Result<(), Error> {
    if proposal > Fence::MAX.get() {
        let rule = format!(
            "the client's wall clock leads to the fence {proposal}: the greatest is {}",
            Fence::MAX
        );
        return Err(Error::new(ErrorKind::InvalidInput, rule));
    }
    match (lock_request.mode, preferred) {
        (Mode::Permit(permits), Some(slot)) => PermitSlot::new(slot.get(), permits).map(drop),
        _ => Ok(()),
    }
}

/// Reads a number of milliseconds; `None` if it is negative, which means no end.
fn duration(answer: &Value) -> Option<Duration> {
    let milliseconds = u64::try_from(answer.as_integer()?).ok()?;
    Some(Duration::from_millis(milliseconds))
}

fn foreign_type(kind: &str) -> Error {
    let message = format!(
        "another library's lock is under the key: a {kind}; Redisson writes a hash, which cannot \
         exclude ours; use another name, or keep the two apart with ?prefix="
    );
    Error::new(ErrorKind::IncompatibleKey, message)
}
