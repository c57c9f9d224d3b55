//! Records: a value that belongs to a lock and is written by fence.
//!
//! Opening asks a majority, and finds any value that a majority may have. Writing needs a majority where no
//! greater fence opened the record. `rounds` decides from the members' answers alone.
//!
//! A record may have to outlive restarts ([`RecordKey::lasting`]). A member that lost its data within the
//! retention then has no vote: it may have had a value or refused a fence, and no longer knows.

pub(crate) mod action;
pub(crate) mod operation;
mod rounds;

use std::time::Duration;

use leasehold_types::{Error, ErrorKind, RecordKey};

use crate::engine::{Engine, Now};
use crate::member::{Answered, Task};
use crate::membership::{Access, Membership};
use crate::operation::{OperationId, Outcome};
use crate::reply::Reply;
use crate::request::Request;
use crate::trust::UntrustedReason;
use action::RecordAction;
use operation::RecordOperation;
use rounds::Round;

/// How long one member may take. A record may be long, and a durable member waits for its disk.
const LIMIT: Duration = Duration::from_secs(2);

impl Engine {
    pub(crate) fn start_record(
        &mut self,
        now: Now,
        id: OperationId,
        mut record: RecordKey,
        action: RecordAction,
    ) {
        let members = self.members.len();
        // A single server is used as it is.
        record.lasting = record.lasting.filter(|_| members > 1);
        let operation = RecordOperation {
            round: Round::new(&action, members),
            record,
            action,
            began: now.instant,
            unanswered: 0,
            pending: (0..members).collect(),
            timer: None,
        };
        self.records.running.insert(id, operation);
        self.advance_record(now, id);
    }

    /// Forgets an operation. Late replies to its requests find none.
    pub(crate) fn cancel_record(&mut self, id: OperationId) {
        if let Some(operation) = self.records.running.remove(&id) {
            self.set_timer(id, operation.timer, None);
        }
    }

    /// Continues the operations that wait for a member.
    pub(crate) fn resume_records(&mut self, now: Now) {
        let running = self.records.running.iter();
        let waiting = running.filter(|(_, it)| !it.pending.is_empty());
        let mut waiting: Vec<OperationId> = waiting.map(|(id, _)| *id).collect();
        waiting.sort_unstable();
        for id in waiting {
            self.advance_record(now, id);
        }
    }

    /// Asks the members that can be asked by now.
    pub(crate) fn advance_record(&mut self, now: Now, id: OperationId) {
        let Some(operation) = self.records.running.get_mut(&id) else {
            return;
        };
        let (began, pending) = (operation.began, std::mem::take(&mut operation.pending));
        let is_lasting = operation.record.lasting.is_some();
        let is_over = began + LIMIT <= now.instant;
        for member in pending {
            let access = self.membership.access(now.instant, member, began);
            let Some(operation) = self.records.running.get_mut(&id) else {
                return;
            };
            let failure = match access {
                Access::Pending if !is_over => {
                    operation.pending.push(member);
                    continue;
                }
                Access::Open if is_lasting && !self.membership.is_durable(member) => {
                    self.membership.named_failure(member, forgetful())
                }
                Access::Open => {
                    operation.unanswered += 1;
                    let (key, action) = (operation.record.key.clone(), operation.action.clone());
                    let request = Request::Record(key, action);
                    self.send(now, member, Task::Record(id), request, LIMIT);
                    continue;
                }
                Access::Pending | Access::Closed => {
                    let obstacle = self.membership.obstacle(now.instant, member);
                    let no_vote = || Error::new(ErrorKind::Unreachable, "the member has no vote");
                    obstacle.unwrap_or_else(|| self.membership.named_failure(member, no_vote()))
                }
            };
            operation.round.fail(failure);
        }
        self.decide_record(id);
    }

    /// Takes in what a member answered.
    pub(crate) fn take_record(&mut self, now: Now, from: &Answered, id: OperationId, reply: Reply) {
        let Some(operation) = self.records.running.get_mut(&id) else {
            return;
        };
        operation.unanswered -= 1;
        let (member, membership) = (from.member, &mut self.membership);
        let counts = membership.counts(member, from.sent, Some(&from.incarnation));
        let has_no_vote = |membership: &Membership, reason: UntrustedReason| {
            let mut failure = membership.failure(now.instant, member, &reason);
            failure.error = failure.error.with_unknown_effect();
            failure
        };
        match (reply, counts) {
            (Reply::Failed(error), _) => {
                let failure = membership.named_failure(member, error);
                operation.round.fail(failure);
            }
            (Reply::Record(_), Err(reason)) => {
                operation.round.fail(has_no_vote(membership, reason));
            }
            (Reply::Record(answer), Ok(())) => {
                let retention = operation.record.lasting.unwrap_or_default();
                match membership.remembers(member, from.sent, retention) {
                    Ok(()) => operation.round.count(answer),
                    Err(young) => operation.round.fail(has_no_vote(membership, young)),
                }
            }
            _ => {
                let failure = membership.named_failure(member, invalid_response());
                operation.round.fail(failure);
            }
        }
        self.decide_record(id);
    }

    /// A request has no reply, or has none in time. It may have taken effect.
    pub(crate) fn lose_record(&mut self, member: usize, id: OperationId, error: Error) {
        let Some(operation) = self.records.running.get_mut(&id) else {
            return;
        };
        operation.unanswered -= 1;
        let failure = self.membership.named_failure(member, error);
        operation.round.fail(failure);
        self.decide_record(id);
    }

    /// Ends the operation if further answers change nothing, or if there will be none.
    fn decide_record(&mut self, id: OperationId) {
        let Some(operation) = self.records.running.get_mut(&id) else {
            return;
        };
        let is_waiting = !operation.pending.is_empty();
        let is_open = is_waiting || operation.unanswered > 0;
        if is_open && !operation.round.is_decided() {
            let timer = is_waiting.then_some(operation.began + LIMIT);
            let old = std::mem::replace(&mut operation.timer, timer);
            return self.set_timer(id, old, timer);
        }
        let Some(operation) = self.records.running.remove(&id) else {
            return;
        };
        self.set_timer(id, operation.timer, None);
        let outcome = operation.round.outcome();
        self.finish(id, outcome.map_or_else(Outcome::Failed, Outcome::Record));
    }
}

fn forgetful() -> Error {
    let text = "does not keep what it acknowledges across a restart, and this must outlive one";
    Error::new(ErrorKind::Unsupported, text)
}

fn invalid_response() -> Error {
    let text = "not the answer to what was asked of a record";
    Error::new(ErrorKind::InvalidResponse, text).with_unknown_effect()
}
