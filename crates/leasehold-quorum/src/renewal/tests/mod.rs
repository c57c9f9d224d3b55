mod repairs;

use std::sync::Arc;
use std::time::Duration;

use leasehold_types::{LostReason, Mode, PermitSlot, Permits};

use super::*;
use crate::membership::tests::TestQuorum;
use crate::operation::Event;

const TTL: Duration = Duration::from_secs(10);

const GONE: LeaseState = LeaseState::Lost(LostReason::Gone);
const TAKEN: LeaseState = LeaseState::Lost(LostReason::Taken);
const BROKEN: LeaseState = LeaseState::Lost(LostReason::Broken);
use LeaseState::Renewed as STANDS;

/// A client of three members with a vote.
struct Fixture {
    quorum: TestQuorum,
    net: Net,
    renewals: Renewals,
    sent: Vec<(usize, RenewalTask, Request)>,
}

impl Fixture {
    fn new() -> Self {
        Self::of(3)
    }

    fn of(members: usize) -> Self {
        let (quorum, net) = TestQuorum::with_net(members);
        Self {
            quorum,
            net,
            renewals: Renewals::default(),
            sent: Vec::new(),
        }
    }

    /// What the client's operations share, at the present instant.
    fn net(&mut self) -> &mut Net {
        self.net.now.instant = self.quorum.ours();
        &mut self.net
    }

    fn start(&mut self, id: u64, leases: &[&Held]) {
        let leases = leases.iter().copied().cloned().collect();
        self.net();
        self.renewals.start(&mut self.net, OperationId(id), leases);
        self.poll();
    }

    fn poll(&mut self) {
        while let Some((members, id, request)) = self.net.pop_transmit() {
            for member in members.iter() {
                let flight = self.net.members[member].answered(id, self.quorum.ours());
                let Some(Task::Renewal(task)) = flight.map(|it| it.task) else {
                    panic!("{request:?}");
                };
                self.sent.push((member.into(), task, request.clone()));
            }
        }
    }

    fn take(&mut self, member: usize) -> (RenewalTask, Request) {
        let index = self.sent.iter().position(|it| it.0 == member);
        let (_, task, request) = self.sent.remove(index.expect("a request"));
        (task, request)
    }

    /// The member answers its oldest request.
    fn answer(&mut self, member: usize, states: &[LeaseState]) {
        let sent = self.quorum.ours();
        self.quorum.now += Duration::from_millis(1);
        let (task, _) = self.take(member);
        let reply = match task {
            RenewalTask::Renew(_) => Reply::Renewed(states.to_vec()),
            _ => Reply::Repaired(vec![true]),
        };
        let sample = self.quorum.sample(member);
        let now = self.quorum.ours();
        self.net()
            .membership
            .sample(now, member.into(), sent, &sample);
        let from = Answered {
            member: member.into(),
            sent,
            incarnation: &sample.incarnation,
            late: false,
        };
        self.renewals.answered(&mut self.net, &from, task, reply);
        self.poll();
    }

    fn lose(&mut self, member: usize) {
        let (task, _) = self.take(member);
        let error = Error::new(ErrorKind::Unreachable, "no answer within 50ms");
        self.net();
        self.renewals
            .lost(&mut self.net, member.into(), task, error);
        self.poll();
    }

    /// Whether nothing is in progress except repairs whose replies were lost.
    fn is_idle(&self) -> bool {
        let mut repairs = self.renewals.repairs.iter();
        self.renewals.rounds.is_empty() && repairs.all(|it| it.lost_until.is_some())
    }

    fn end(&mut self, held: &Held, mode: ReleaseMode) {
        self.net();
        self.renewals.end(&mut self.net, &held.request, mode);
    }

    fn renewals(&mut self) -> Option<Vec<RenewReply>> {
        match self.net.pop_event()?.1 {
            Event::Done(Outcome::Renewed(renewals)) => Some(renewals),
            other => panic!("{other:?}"),
        }
    }

    fn outcome(&mut self) -> Option<Vec<String>> {
        let renewals = self.renewals()?;
        let text = |renewal| match renewal {
            RenewReply::Renewed(_) => "renewed".to_owned(),
            RenewReply::Lost(reason) => format!("lost: {reason:?}"),
            RenewReply::Unknown(error) => error.to_string(),
        };
        Some(renewals.into_iter().map(text).collect())
    }

    /// The members that were asked to repair, with the number of leases.
    fn repairs(&self) -> Vec<(usize, usize)> {
        let repair = |(member, _, request): &(usize, RenewalTask, Request)| match request {
            Request::Repair(leases) => Some((*member, leases.len())),
            _ => None,
        };
        self.sent.iter().filter_map(repair).collect()
    }

    /// Renews with these answers of the three members, in their order.
    fn renew(&mut self, held: &Held, states: [LeaseState; 3]) -> String {
        self.start(1, &[held]);
        for (member, state) in states.into_iter().enumerate() {
            self.answer(member, &[state]);
        }
        self.outcome().expect("all answered").remove(0)
    }
}

fn lock_request() -> LockRequest {
    crate::tests::values::lock_request(TTL)
}

fn held(lock_request: LockRequest) -> Held {
    Held {
        request: Arc::new(lock_request),
        fence: leasehold_types::Fence::new(7).unwrap(),
    }
}

#[test]
fn one_request_per_member_renews_all_leases() {
    let mut fixture = Fixture::new();
    let (one, two) = (held(lock_request()), held(lock_request()));
    fixture.start(1, &[&one, &two]);
    assert_eq!(fixture.sent.len(), 3);
    fixture.answer(0, &[STANDS, GONE]);
    fixture.answer(2, &[STANDS, STANDS]);
    assert!(fixture.outcome().is_none(), "the second lease is open");
    fixture.answer(1, &[GONE, TAKEN]);
    assert_eq!(fixture.outcome().unwrap(), ["renewed", "lost: Taken"]);
    assert_eq!(fixture.repairs(), [(1, 1)]);
}

#[test]
fn silence_is_neither_success_nor_loss() {
    let mut fixture = Fixture::new();
    fixture.start(1, &[&held(lock_request())]);
    fixture.answer(0, &[STANDS]);
    fixture.lose(1);
    assert!(fixture.outcome().is_none());
    fixture.lose(2);
    assert_eq!(
        fixture.outcome().unwrap(),
        ["no quorum: 1 of 3 servers have a vote, 2 needed; \
          m1, m2: no answer within 50ms"]
    );
}

#[test]
fn excluded_member_counts_as_failed() {
    let mut fixture = Fixture::new();
    let now = fixture.quorum.ours();
    let error = Error::new(ErrorKind::Unreachable, "connection refused");
    fixture.net.membership.disconnected(now, 1.into(), error);
    fixture.start(1, &[&held(lock_request())]);
    assert_eq!(fixture.sent.len(), 2);
    fixture.answer(0, &[STANDS]);
    fixture.answer(2, &[BROKEN]);
    let outcome = fixture.outcome().unwrap();
    let reason = "no quorum: fewer than 2 of 3 servers gave the same answer";
    assert_eq!(outcome, [format!("{reason}; m1: connection refused")]);
}

#[test]
fn member_without_a_vote_cannot_renew() {
    let mut fixture = Fixture::new();
    let lease = held(lock_request());
    fixture.quorum.restart(1, false);
    fixture.quorum.reconnect(&mut fixture.net.membership, 1);
    assert_eq!(fixture.renew(&lease, [STANDS, STANDS, STANDS]), "renewed");
    fixture.start(2, &[&lease]);
    fixture.answer(0, &[STANDS]);
    fixture.answer(1, &[STANDS]);
    fixture.lose(2);
    let mut renewals = fixture.renewals().unwrap();
    let RenewReply::Unknown(error) = renewals.remove(0) else {
        panic!("two members of three cannot decide");
    };
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    assert_eq!(error.effect(), leasehold_types::Effect::Unknown);
    assert!(error.eligible_after() > Some(Duration::from_secs(59)));
    let text = "m1: it restarted, lost data, or is new (no vote for 1m 1s)";
    assert!(error.to_string().contains(text), "{error}");
}

#[test]
fn data_lost_before_the_sample_cannot_renew() {
    let mut fixture = Fixture::new();
    fixture.start(1, &[&held(lock_request())]);
    fixture.quorum.forget(1);
    fixture.answer(0, &[STANDS]);
    fixture.answer(1, &[STANDS]);
    assert!(fixture.outcome().is_none());
    fixture.answer(2, &[STANDS]);
    assert_eq!(fixture.outcome().unwrap(), ["renewed"]);
}

#[test]
fn refused_member_is_looked_at_with_each_renewal() {
    let mut fixture = Fixture::new();
    let mut theirs = TestQuorum::new(4).0;
    fixture.quorum.swap_data(1, &mut theirs);
    fixture.quorum.reconnect(&mut fixture.net.membership, 1);
    fixture.quorum.swap_data(1, &mut theirs);
    let lease = held(lock_request());
    fixture.quorum.now += Duration::from_millis(1);
    fixture.start(1, &[&lease]);
    assert_eq!(fixture.sent.len(), 2);
    fixture.quorum.settle(&mut fixture.net.membership);
    fixture.start(2, &[&lease]);
    assert_eq!(fixture.sent.len(), 2 + 3);
}

#[test]
fn renewal_of_a_permit_names_its_slot() {
    let permits = Permits::new(3).unwrap();
    let slot = PermitSlot::new(2, permits).unwrap();
    let lease = held(
        lock_request()
            .with_mode(Mode::Permit(permits))
            .with_slot(slot),
    );
    let mut fixture = Fixture::new();
    fixture.start(1, &[&lease]);
    for (_, _, request) in &fixture.sent {
        let Request::Renew(leases) = request else {
            panic!("{request:?}");
        };
        assert_eq!(leases[0].slot, Some(slot));
    }
    // The member could not move the permit to that slot.
    for (member, state) in [STANDS, STANDS, GONE].into_iter().enumerate() {
        fixture.answer(member, &[state]);
    }
    assert_eq!(fixture.outcome().unwrap(), ["renewed"]);
    assert!(fixture.repairs().is_empty());
}

#[test]
fn missing_answers_are_failures() {
    let mut fixture = Fixture::new();
    fixture.start(1, &[&held(lock_request()), &held(lock_request())]);
    for member in 0..3 {
        fixture.answer(member, &[STANDS]);
    }
    let outcome = fixture.outcome().unwrap();
    assert_eq!(outcome[0], "renewed");
    assert!(outcome[1].contains("m0, m1, m2: not one answer per lease"));
}
