//! Passes replies and losses to the parts of the engine that sent the requests, and sends the requests of
//! these parts.

use leasehold_types::{Error, ErrorKind};

use crate::engine::{BACKGROUND_LIMIT, Engine, Now};
use crate::member::{Answered, Task};
use crate::operation::Outcome;
use crate::reply::Reply;
use crate::request::Request;

impl Engine {
    pub(crate) fn dispatch(&mut self, now: Now, from: &Answered, task: Task, reply: Reply) {
        let member = from.member;
        match task {
            Task::Background => self.membership.handle_reply(now.instant, member, reply),
            Task::MovePermit | Task::Dequeue => {}
            Task::Renewal(task) => {
                if !from.late {
                    let asked = (member, task, from.sent);
                    let (data, membership) = (&from.incarnation, &mut self.membership);
                    self.renewals
                        .handle_reply(now.instant, asked, data, reply, membership);
                }
            }
            Task::Attempt(id, number) => self.take_attempt(now, from, id, number, reply),
            Task::Confirm(id, fence) => self.take_confirmation(now, from, id, fence, reply),
            Task::Record(id) => {
                if !from.late {
                    self.take_record(now, from, id, reply);
                }
            }
            Task::Heartbeat(waits) => self.take_heartbeat(now, member, waits, reply),
            Task::Release {
                lease, operation, ..
            } if matches!(reply, Reply::Contended) => {
                let operation = operation.filter(|_| !from.late);
                self.handle_contended(now, member, lease, operation);
            }
            Task::Release {
                operation,
                successor,
                ..
            } => {
                let got = match &reply {
                    Reply::Released { successor, .. } => *successor,
                    _ => None,
                };
                if let Some((id, number)) = successor {
                    self.take_succession(now, from, id, number, got);
                }
                if let Some(id) = operation.filter(|_| !from.late) {
                    self.handle_release_reply(now, from, id, reply);
                }
            }
        }
    }

    /// A request has no reply, or has none in time.
    pub(crate) fn lose(&mut self, now: Now, member: usize, task: Task, error: Error) {
        match task {
            Task::Attempt(id, number) => self.lose_attempt(now, member, id, number, error),
            Task::Confirm(id, fence) => self.lose_confirmation(now, member, id, fence, error),
            Task::Record(id) => self.lose_record(member, id, error),
            Task::Renewal(task) => {
                let membership = &mut self.membership;
                self.renewals
                    .handle_loss(now.instant, member, task, error, membership);
            }
            Task::Release {
                operation,
                successor,
                ..
            } => {
                if let Some((id, number)) = successor {
                    self.lose_attempt(now, member, id, number, error.clone());
                }
                if let Some(id) = operation {
                    self.count_release(now, member, id, Reply::Failed(error));
                }
            }
            Task::Heartbeat(_) | Task::MovePermit | Task::Dequeue | Task::Background => {}
        }
    }

    /// Sends the requests of the engine's parts, and continues what waits for members.
    pub(crate) fn run_pending(&mut self, now: Now) {
        loop {
            self.send_background(now);
            if self.membership.take_changed(now.instant) {
                self.renewals.resume(now.instant, &mut self.membership);
                self.resume_releases(now);
                self.resume_records(now);
                self.advance_health_checks(now);
                self.resume_all(now);
                continue;
            }
            let Some((member, task)) = self.unsent.pop_front() else {
                break;
            };
            let error = Error::new(ErrorKind::Unreachable, "not connected");
            self.lose(now, member, task, error);
        }
        while let Some((id, outcome)) = self.renewals.poll_outcome() {
            self.finish(id, Outcome::Renewed(outcome));
        }
    }

    fn send_background(&mut self, now: Now) {
        while let Some((member, request)) = self.membership.poll_request() {
            self.send(now, member, Task::Background, request, BACKGROUND_LIMIT);
        }
        while let Some((member, task, request)) = self.renewals.poll_request() {
            let limit = request
                .usable_ttl()
                .map_or(BACKGROUND_LIMIT, |ttl| self.limit_of(ttl));
            if let Request::Repair(leases) = &request {
                self.doubt(member, leases);
            }
            self.send(now, member, Task::Renewal(task), request, limit);
        }
    }
}
