//! Records: a value that belongs to a lock and is written by fence.
//!
//! Opening asks a majority, and finds any value that a majority may have. Writing needs a majority where no
//! greater fence opened the record. `rounds` decides from the members' answers alone.
//!
//! A record may have to outlive restarts ([`RecordKey::lasting`]). A member that lost its data within the
//! retention then has no vote: it may have had a value or refused a fence, and no longer knows. A reader counts the
//! value that such a member has, because only a majority with the same value decides.

mod rounds;

use std::time::Duration;

use leasehold_types::{BootInstant, Error, ErrorKind, RecordKey};

use crate::fanout::{Contact, Fanout};
use crate::member::index::MemberIndex;
use crate::member::{Answered, Task};
use crate::messages::{RecordAction, Reply, Request};
use crate::net::{Net, Reach, Timer};
use crate::operation::operations::Next;
use crate::operation::{OperationId, Outcome};
use crate::trust::UntrustedReason;
use rounds::Round;

/// How long one member may take. A record may be long, and a durable member waits for its disk.
const LIMIT: Duration = Duration::from_secs(2);

/// Opens, writes or reads the record of a lock.
#[derive(Debug)]
pub(crate) struct RecordOperation {
    id: OperationId,
    record: RecordKey,
    action: RecordAction,
    fanout: Fanout,
    round: Round,
    /// When members that are not connected yet are waited for no longer.
    timer: Option<BootInstant>,
}

impl RecordOperation {
    pub(crate) fn new(
        net: &Net,
        id: OperationId,
        mut record: RecordKey,
        action: RecordAction,
    ) -> Self {
        let members = net.members.len();
        // A single server is used as it is.
        record.lasting = record.lasting.filter(|_| members > 1);
        Self {
            id,
            round: Round::new(&action, members),
            record,
            action,
            fanout: Fanout::new(net),
            timer: None,
        }
    }

    /// Late replies to its requests find no operation.
    pub(crate) fn cancel(mut self, net: &mut Net) {
        net.set_timer(Timer::Record(self.id), &mut self.timer, None);
    }

    /// Whether it waits for members that are not connected yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.fanout.is_waiting()
    }

    /// The timer is due.
    pub(crate) fn wake(&mut self, net: &mut Net) -> Next {
        self.timer = None;
        self.advance(net)
    }

    /// Asks the members that can be asked by now.
    pub(crate) fn advance(&mut self, net: &mut Net) -> Next {
        let Self {
            record,
            action,
            round,
            ..
        } = self;
        let must_last = record.lasting.is_some() && !matches!(action, RecordAction::Read);
        let id = self.id;
        let began = self.fanout.began();
        self.fanout.ask(|member| {
            let failure = match net.reach(member, began, began + LIMIT) {
                Reach::Later => return Contact::Later,
                Reach::Open if must_last && !net.membership.is_durable(member) => {
                    net.membership.named_failure(member, forgetful())
                }
                Reach::Open => {
                    let request = Request::Record(record.key.clone(), action.clone());
                    net.send(member, Task::Record(id), request, LIMIT);
                    return Contact::Sent;
                }
                Reach::Closed(obstacle) => {
                    let no_vote = || Error::new(ErrorKind::Unreachable, "the member has no vote");
                    obstacle.unwrap_or_else(|| net.membership.named_failure(member, no_vote()))
                }
            };
            round.fail(failure);
            Contact::Failed
        });
        self.decide(net)
    }

    /// Takes in what a member answered.
    pub(crate) fn answered(&mut self, net: &mut Net, from: &Answered, reply: Reply) -> Next {
        self.fanout.answered();
        let (now, member) = (net.now.instant, from.member);
        let membership = &mut net.membership;
        let counts = membership.counts(member, from.sent, Some(from.incarnation));
        let has_no_vote = |reason: UntrustedReason| {
            let mut failure = membership.failure(now, member, &reason);
            failure.error = failure.error.with_unknown_effect();
            failure
        };
        match (reply, counts) {
            (Reply::Failed(error), _) => {
                self.round.fail(membership.named_failure(member, error));
            }
            (Reply::Record(_), Err(reason)) => self.round.fail(has_no_vote(reason)),
            (Reply::Record(answer), Ok(())) => {
                let retention = self.record.lasting.unwrap_or_default();
                let forgets = self.record.lasting.is_some() && !membership.is_durable(member);
                let failure = match membership.remembers(member, from.sent, retention) {
                    _ if forgets => Some(membership.named_failure(member, forgetful())),
                    Ok(()) => None,
                    Err(young) => Some(has_no_vote(young)),
                };
                match failure {
                    None => self.round.count(answer),
                    Some(failure) => {
                        self.round.count_value(answer);
                        self.round.fail(failure);
                    }
                }
            }
            _ => {
                let failure = membership.named_failure(member, invalid_response());
                self.round.fail(failure);
            }
        }
        self.decide(net)
    }

    /// A request has no reply, or has none in time. It may have taken effect.
    pub(crate) fn lost(&mut self, net: &mut Net, member: MemberIndex, error: Error) -> Next {
        self.fanout.answered();
        self.round.fail(net.membership.named_failure(member, error));
        self.decide(net)
    }

    /// Ends the operation if further answers change nothing, or if there will be none.
    fn decide(&mut self, net: &mut Net) -> Next {
        let timer = Timer::Record(self.id);
        if !self.fanout.is_over() && !self.round.is_decided() {
            let end = self.fanout.began() + LIMIT;
            let end = self.fanout.is_waiting().then_some(end);
            net.set_timer(timer, &mut self.timer, end);
            return Next::Runs;
        }
        net.set_timer(timer, &mut self.timer, None);
        let outcome = self.round.outcome();
        net.finish(
            self.id,
            outcome.map_or_else(Outcome::Failed, Outcome::Record),
        );
        Next::Over
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
