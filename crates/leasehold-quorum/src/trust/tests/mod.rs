//! Invented histories: which members count, and from when on.

mod clocks;
mod data_loss;
mod identities;
mod limits;
mod quorums;
mod records;
mod restoring;
mod rollback;

use super::*;
use crate::tests::values::{RandomEntropy, edited, observe};
use crate::trust::member_records::RecordStep;
use crate::trust::untrusted::{ClockFault, Forgetting};
use leasehold_types::{DataGeneration, MemberRecord, MemberRecordEdit, RunId, WallTime};

const MAX_TTL: Duration = Duration::from_secs(60);
const TOLERANCE: Duration = Duration::from_millis(250);
const SECOND: u64 = 1_000_000;

/// A server whose state a history changes.
#[derive(Clone)]
struct Server {
    run: u64,
    started: i64,
    durable: bool,
    member_record: Option<MemberRecord>,
    /// Ahead of the true time, in microseconds.
    clock: i64,
}

/// Servers, and one client that knows what it asked of them. Times are in seconds of true time.
struct Fixture {
    servers: Vec<Server>,
    trust: Trust,
    /// True time, and how far this client's clock is behind it, in microseconds.
    now: i64,
    behind: i64,
}

fn ids(count: usize) -> Vec<MemberId> {
    (0..count).map(|n| MemberId::new(format!("m{n}"))).collect()
}

fn set(count: usize) -> MemberSet {
    MemberSet::new(ids(count), MAX_TTL, TOLERANCE)
}

impl Fixture {
    /// A quorum that was initialized long ago, and that this client has not met yet.
    fn new(count: usize) -> Self {
        let server = |n: usize| Server {
            run: n as u64,
            started: 0,
            durable: false,
            member_record: None,
            clock: 0,
        };
        let mut fixture = Self {
            servers: (0..count).map(server).collect(),
            trust: Trust::new(ids(count), set(count), true),
            now: 1_000_000 * SECOND as i64,
            behind: 0,
        };
        fixture.meet_all();
        fixture.keep_member_records();
        fixture.forget_the_client();
        fixture.pass(100_000);
        fixture
    }

    /// Another client, which knows nothing, takes over.
    fn forget_the_client(&mut self) {
        let count = self.servers.len();
        self.trust = Trust::new(ids(count), set(count), true);
    }

    /// A quorum that this client has met.
    fn met(count: usize) -> Self {
        let mut fixture = Self::new(count);
        fixture.meet_all();
        fixture
    }

    /// Another client takes over after these seconds, and meets all members.
    fn replace_client_after(&mut self, seconds: i64) {
        self.forget_the_client();
        self.pass(seconds);
        self.meet_all();
    }

    fn pass(&mut self, seconds: i64) {
        self.now += seconds * SECOND as i64;
    }

    fn ours(&self) -> BootInstant {
        BootInstant::from_nanos(((self.now - self.behind) * 1_000) as u64)
    }

    fn at(&self) -> Interval {
        let now = self.ours();
        Interval {
            sent: now,
            received: now,
        }
    }

    fn wall(&self, member: usize) -> WallTime {
        WallTime::from_micros((self.now + self.servers[member].clock) as u64)
    }

    fn status(&self, member: usize) -> MemberStatus {
        let server = &self.servers[member];
        let uptime = self.now + server.clock - server.started;
        let mut status = MemberStatus::new(
            RunId::new(server.run.to_string()),
            self.wall(member),
            Duration::from_micros(uptime.max(0) as u64),
        );
        status.durable = server.durable;
        status.member_record = server.member_record.clone();
        status
    }

    fn meet(&mut self, member: usize) -> Learned {
        self.trust
            .present(member.into(), self.status(member), self.at())
    }

    fn meet_all(&mut self) {
        for member in 0..self.servers.len() {
            self.meet(member);
        }
    }

    fn meet_and_record(&mut self, member: usize) {
        self.meet(member);
        self.keep_member_records();
    }

    /// The member restarts, and the client notes that in the records.
    fn restart_and_record(&mut self, member: usize, keeps_data: bool) {
        self.restart(member, keeps_data);
        self.meet_and_record(member);
    }

    /// Does what the client would do about the records, until nothing is left to do.
    fn keep_member_records(&mut self) {
        for _ in 0..10 {
            let steps = self.trust.member_record_steps(&RandomEntropy);
            if steps.is_empty() {
                return;
            }
            for step in steps {
                let member = step.member();
                self.carry_out(member.into(), step);
                // Answers arrive one after the other.
                self.now += 1;
                self.meet(member.into());
            }
        }
        panic!("the member records are never done");
    }

    /// Does at this server what a client would do.
    fn carry_out(&mut self, server: usize, step: RecordStep) {
        match step {
            RecordStep::Write(_, edit) => self.write(server, edit),
            RecordStep::Observe(_, seen) => self.observe(server, &seen),
            RecordStep::Refresh(_) => {}
        }
    }

    fn write(&mut self, member: usize, edit: MemberRecordEdit) {
        let clock = self.wall(member);
        let record = &mut self.servers[member].member_record;
        *record = Some(edited(record.take(), edit, clock));
    }

    fn observe(&mut self, member: usize, seen: &[(MemberId, DataGeneration)]) {
        let clock = self.wall(member);
        observe(self.record(member), seen, clock);
    }

    /// The record of a member that has one.
    fn record(&mut self, member: usize) -> &mut MemberRecord {
        let record = self.servers[member].member_record.as_mut();
        record.expect("a record")
    }

    fn restart(&mut self, member: usize, keeps_data: bool) {
        let server = &mut self.servers[member];
        server.run += 1_000;
        server.started = self.now + server.clock;
        if !keeps_data {
            server.member_record = None;
        }
    }

    fn step(&mut self, member: usize, seconds: i64) {
        self.servers[member].clock += seconds * SECOND as i64;
    }

    /// Whether an answer to a request sent now counts.
    fn counts(&self, member: usize) -> Result<(), UntrustedReason> {
        self.trust.counts(member.into(), self.ours(), None)
    }

    fn all_count(&self) {
        for member in 0..self.servers.len() {
            assert_eq!(self.counts(member), Ok(()), "m{member}");
        }
    }

    /// The member may have forgotten, and no record says until when it has no vote.
    fn assert_forgot(&self, member: usize, what: Forgetting) {
        let forgot = UntrustedReason::Forgot { what, until: None };
        assert_eq!(self.counts(member), Err(forgot));
    }

    fn forgot(&self, member: usize) -> Duration {
        match self.counts(member) {
            Err(UntrustedReason::Forgot {
                until: Some(until), ..
            }) => until.since(self.ours()),
            other => panic!("m{member}: {other:?}"),
        }
    }
}
