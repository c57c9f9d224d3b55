//! The small form of an acquisition behaves as the ordinary one in random runs.

use super::*;

/// A reproducible source of choices.
struct Choices(u64);

impl Choices {
    fn below(&mut self, count: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % count
    }
}

/// One step of a script, which two clients take alike.
#[derive(Clone, Copy, Debug)]
enum Step {
    Acquire { waits: bool },
    Answer { member: usize, choice: u64 },
    Pass(u64),
    Release,
    Detach,
    Cancel,
    Notify(usize),
    Renew,
    Reconnect(usize),
}

fn step(choices: &mut Choices, members: usize) -> Step {
    let member = choices.below(members as u64) as usize;
    match choices.below(24) {
        0..=2 => Step::Acquire {
            waits: choices.below(2) == 0,
        },
        3..=15 => Step::Answer {
            member,
            choice: choices.below(12),
        },
        16 | 17 => Step::Pass([1, 12, 60, 600, 4_000][choices.below(5) as usize]),
        18 | 19 => Step::Release,
        20 => [Step::Detach, Step::Renew][choices.below(2) as usize],
        21 => Step::Cancel,
        22 => Step::Notify(member),
        _ => Step::Reconnect(member),
    }
}

/// A client, and the requests that it began.
struct Run {
    fixture: Fixture,
    begun: Vec<(Arc<LockRequest>, OperationId)>,
}

impl Run {
    fn new(members: usize, never_plain: bool) -> Self {
        let mut fixture = Fixture::new(members);
        fixture.engine.net.never_plain = never_plain;
        let begun = Vec::new();
        Self { fixture, begun }
    }

    fn take(&mut self, step: Step) {
        let fixture = &mut self.fixture;
        // A wait may have another owner by now.
        let last = self.begun.last().map(|(lock_request, id)| {
            let owner = fixture.engine.owner_of(*id).unwrap_or(lock_request.owner);
            (
                Arc::new(LockRequest::clone(lock_request).with_owner(owner)),
                *id,
            )
        });
        match (step, last) {
            (Step::Acquire { waits }, _) => {
                let lock_request = Arc::new(fixture.lock_request(waits));
                let id = fixture.acquire(&lock_request);
                self.begun.push((lock_request, id));
            }
            (Step::Answer { member, choice }, _) => {
                let reply = fixture.sent(member).first().map(|it| answer(it, choice));
                if let Some(reply) = reply {
                    fixture.reply(member, reply);
                }
            }
            (Step::Pass(millis), _) => fixture.pass(millis),
            (Step::Reconnect(member), _) => {
                fixture.disconnect(member);
                fixture.connect(member);
            }
            (Step::Release | Step::Detach, Some((lock_request, _))) => {
                let mode = match step {
                    Step::Detach => ReleaseMode::Detach,
                    _ => ReleaseMode::HandOver,
                };
                fixture.start(Operation::Release(lock_request, mode));
                self.begun.pop();
            }
            (Step::Cancel, Some((_, id))) => fixture.cancel(id),
            (Step::Notify(member), Some((lock_request, _))) => {
                let (now, key, mode) = (fixture.now(), lock_request.key.clone(), lock_request.mode);
                let notification = Notification {
                    key,
                    waiter: lock_request.owner,
                    mode,
                };
                fixture
                    .engine
                    .handle_notification(now, member.into(), notification);
                fixture.poll();
            }
            (Step::Renew, Some((lock_request, _))) => {
                fixture.renew(&lock_request);
            }
            (_, None) => {}
        }
    }

    /// Everything that a driver sees.
    fn seen(&self) -> String {
        let (sent, events) = (&self.fixture.sent, &self.fixture.events);
        let next = self.fixture.engine.next_timeout();
        let request =
            |it: &VecDeque<(RequestId, Request)>| format!("{:?}", it.back().map(|it| &it.1));
        let sent = sent.iter().map(request);
        let sent: Vec<String> = sent.collect();
        format!("{sent:?} {:?} {} {next:?}", events.back(), events.len())
    }
}

/// One of the answers that a member may give.
fn answer(request: &Request, choice: u64) -> Reply {
    let proposal = match request {
        Request::TryAcquire { proposal, .. } | Request::Acquire { proposal, .. } => *proposal,
        _ => 9,
    };
    match (request, choice) {
        (Request::Renew(leases), 0..=8) => {
            Reply::Renewed(leases.iter().map(|_| LeaseState::Renewed).collect())
        }
        (Request::Renew(leases), _) => {
            let gone = LeaseState::Lost(LostReason::Gone);
            Reply::Renewed(leases.iter().map(|_| gone.clone()).collect())
        }
        (Request::Free { .. } | Request::Release { .. }, 0..=6) => released(true),
        (Request::Free { .. }, 7..=9) => Reply::Contended,
        (Request::Free { .. } | Request::Release { .. }, _) => released(false),
        (Request::ConfirmFence { .. }, _) => Reply::Confirmed(FenceConfirmation::Confirmed),
        (Request::Repair(leases), _) => Reply::Repaired(vec![true; leases.len()]),
        (Request::Heartbeat(waits), _) => Reply::Waiting(vec![Refusal::default(); waits.len()]),
        (_, 0..=5) => granted(proposal),
        (_, 6) => granted(proposal + 5),
        (_, 7) => Reply::GrantedBehind,
        (_, 8) => busy(1),
        (_, 9) => refused(),
        (_, 10) => Reply::Failed(Error::new(ErrorKind::Unreachable, "out of memory")),
        _ => Reply::Dequeued,
    }
}

#[test]
fn small_form_behaves_as_the_ordinary_one() {
    let mut plain_forms = 0;
    for seed in 0..600 {
        let mut choices = Choices(seed);
        let members = [1, 3, 5][seed as usize % 3];
        let (mut one, mut other) = (Run::new(members, false), Run::new(members, true));
        for count in 0..40 {
            let step = step(&mut choices, members);
            one.take(step);
            other.take(step);
            let last = one.begun.last();
            let last = last.and_then(|(_, id)| one.fixture.engine.acquisitions.get(*id));
            plain_forms += usize::from(last.is_some_and(|it| it.as_ordinary().is_none()));
            assert_eq!(
                one.seen(),
                other.seen(),
                "seed {seed}, step {count}: {step:?}"
            );
        }
    }
    assert!(
        plain_forms > 1_000,
        "{plain_forms} steps met the small form"
    );
}
