use std::time::Duration;

use leasehold::Error;
use leasehold::look::ClientId;
use leasehold::member::PermitSlot;
use leasehold::store::LockRequest;

use super::failure::{Rights, refused};
use super::names::{MEMBER_RECORD, Names, PRESENT};
use crate::resp::{CommandWriter, Value};
use crate::scripts::Script;

/// Turns the requests of one client to one member into commands, and the answers into replies.
#[derive(Clone, Debug)]
pub struct Codec {
    /// The prefix of the keys of all locks.
    pub prefix: String,
    /// The user of the server, for messages.
    pub user: String,
    /// The client.
    pub client: ClientId,
}

impl Codec {
    /// For how long a release sometimes leaves a contended lock free for clients of other libraries.
    pub const FOREIGN_GAP: Duration = Duration::from_millis(150);

    pub(super) fn names<'c>(&self, lock_request: &'c LockRequest) -> Names<'c> {
        Names::new(&self.prefix, &lock_request.key)
    }

    /// Returns the answer unless it is an error. A script may have done part of its work before an error.
    pub(super) fn accepted<'v>(&self, answer: &'v Value) -> Result<&'v Value, Error> {
        match answer {
            Value::Error { code, message } => {
                Err(self.refused(code, message).with_unknown_effect())
            }
            answer => Ok(answer),
        }
    }

    pub(super) fn refused(&self, code: &str, message: &str) -> Error {
        refused(code, message, &self.user, RIGHTS)
    }
}

/// The rights that a user needs for all commands and scripts of locks.
pub(crate) const RIGHTS: Rights = Rights(
    "+set +get +del +exists +pttl +pexpire +pexpireat +type +zadd +zincrby +zscore +zmscore \
     +zrange +zrangebyscore +zrank +zrem +zremrangebyscore +zcount +hget +hset +hdel +hgetall \
     +time +publish +evalsha +script|load",
);

/// Begins the call of a script for this number of locks. Their keys follow.
pub(super) fn call(script: &Script, locks: usize, out: &mut CommandWriter<'_>) {
    out.command("EVALSHA").arg(script.sha1());
    out.number(5 * locks as u64 + 1).arg(PRESENT);
}

/// Begins the call of a script for one lock, with one more key of the lock than all scripts take.
pub(crate) fn write_call(
    script: &Script,
    names: &Names<'_>,
    further: Option<&str>,
    out: &mut CommandWriter<'_>,
) {
    out.command("EVALSHA").arg(script.sha1());
    out.number(6 + u64::from(further.is_some())).arg(PRESENT);
    names.write_all(out);
    if let Some(kind) = further {
        names.write(out, kind);
    }
}

/// Begins the call of a script of the member record.
pub(super) fn call_record(script: &Script, out: &mut CommandWriter<'_>) {
    out.command("EVALSHA").arg(script.sha1());
    out.number(1).arg(MEMBER_RECORD);
}

/// Adds the number of a permit, or nothing.
pub(super) fn slot(slot: Option<PermitSlot>, out: &mut CommandWriter<'_>) {
    match slot {
        Some(slot) => out.number(slot.get().into()),
        None => out.arg(""),
    };
}
