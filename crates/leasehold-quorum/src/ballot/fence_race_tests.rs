//! Requests that are held together, over members that receive them in any order.

use std::collections::HashSet;

use super::fence_race::ROUNDS;
use super::tests::{asks, fence, won};
use super::*;

fn everybody(_: MemberIndex) -> bool {
    true
}

/// Repeats the same numbers for the same seed (Marsaglia, "Xorshift RNGs", 2003).
struct SimRng(u64);

impl SimRng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// A message in transit, from this owner to this member.
enum Message {
    Ask(usize, usize),
    Vote(usize, usize, Vote),
    Confirm(usize, usize, Fence),
    Confirmed(usize, usize, Fence, Option<FenceConfirmation>),
}

/// Requests that are granted together, and the members' counters.
struct Run {
    rng: SimRng,
    counters: Vec<u64>,
    /// Whether members confirm only what raises their counters.
    strict: bool,
    /// Whether members may fail to answer.
    fails: bool,
    /// Whether the last member refuses every request.
    refuses: bool,
    ballots: Vec<Ballot>,
    /// How each attempt ended, and what had been granted when it began.
    ends: Vec<Option<Decision>>,
    floors: Vec<Option<Fence>>,
    messages: Vec<Message>,
}

impl Run {
    fn new(members: usize, seed: u64) -> Self {
        let mut rng = SimRng(seed * 2 + 1);
        rng.0 = (0..20).fold(0, |_, _| rng.next());
        let counters = (0..members).map(|_| rng.next() % 3).collect();
        Self {
            rng,
            counters,
            strict: true,
            fails: false,
            refuses: false,
            ballots: Vec::new(),
            ends: Vec::new(),
            floors: Vec::new(),
            messages: Vec::new(),
        }
    }

    fn begin(&mut self) {
        let (lock_request, members) = (self.ballots.len(), self.counters.len());
        let ballot = match self.strict {
            true => Ballot::held_together(members, self.rng.next()),
            false => Ballot::new(members),
        };
        self.ballots.push(ballot);
        self.ends.push(None);
        self.floors.push(self.fences().into_iter().max());
        let asked = (0..members).map(|member| Message::Ask(lock_request, member));
        self.messages.extend(asked);
    }

    /// Runs this many attempts to their ends.
    fn run(&mut self, lock_requests: usize) {
        while self.ballots.len() < lock_requests || !self.messages.is_empty() {
            let begins = self.messages.is_empty() || self.rng.below(6) == 0;
            if begins && self.ballots.len() < lock_requests {
                self.begin();
            }
            let next = self.rng.below(self.messages.len());
            let message = self.messages.swap_remove(next);
            self.deliver(message);
        }
    }

    fn deliver(&mut self, message: Message) {
        let fails = self.fails && self.rng.below(12) == 0;
        let answer = match message {
            Message::Ask(lock_request, member) => {
                self.counters[member] += 1;
                let drawn = Vote::Granted(fence(self.counters[member]));
                let refuses = self.refuses && member + 1 == self.counters.len();
                let vote = if refuses { Vote::Busy } else { drawn };
                Message::Vote(
                    lock_request,
                    member,
                    if fails { Vote::Failed } else { vote },
                )
            }
            Message::Confirm(lock_request, member, fence) => {
                let confirmed = Some(self.confirm(member, fence)).filter(|_| !fails);
                Message::Confirmed(lock_request, member, fence, confirmed)
            }
            Message::Vote(lock_request, member, vote) => {
                self.ballots[lock_request].vote(member.into(), vote);
                return self.step(lock_request);
            }
            Message::Confirmed(lock_request, member, fence, confirmed) => {
                self.ballots[lock_request].confirm(member.into(), fence, confirmed);
                return self.step(lock_request);
            }
        };
        self.messages.push(answer);
    }

    fn confirm(&mut self, member: usize, floor: Fence) -> FenceConfirmation {
        let counter = &mut self.counters[member];
        if self.strict && *counter >= floor.get() {
            return FenceConfirmation::Conflict(fence(*counter));
        }
        *counter = floor.get().max(*counter);
        FenceConfirmation::Confirmed
    }

    fn step(&mut self, lock_request: usize) {
        if self.ends[lock_request].is_some() {
            return;
        }
        match self.ballots[lock_request].decide(everybody) {
            Decision::Wait => {}
            Decision::Confirm(fence, members) => {
                let asked = members.into_iter();
                let asked =
                    asked.map(|member| Message::Confirm(lock_request, member.into(), fence));
                self.messages.extend(asked);
            }
            end => self.ends[lock_request] = Some(end),
        }
    }

    fn fences(&self) -> Vec<Fence> {
        let won = self.ends.iter().filter_map(|end| match end {
            Some(Decision::Won(fence)) => Some(*fence),
            _ => None,
        });
        won.collect()
    }

    fn has_one_fence_twice(&self) -> bool {
        let fences = self.fences();
        let distinct: HashSet<Fence> = fences.iter().copied().collect();
        distinct.len() < fences.len()
    }
}

fn worlds() -> impl Iterator<Item = (usize, usize, u64)> {
    let sizes = [3, 5]
        .into_iter()
        .flat_map(|m| (2..=4).map(move |c| (m, c)));
    sizes.flat_map(|(members, lock_requests)| {
        (0..2_000).map(move |seed| (members, lock_requests, seed))
    })
}

/// Runs attempts in each order. The last member refuses them all if `refuses`.
fn assert_fences_are_unique_and_grow(refuses: bool) {
    let (mut all, mut granted) = (0, 0);
    for (members, lock_requests, seed) in worlds() {
        let mut run = Run::new(members, seed);
        run.refuses = refuses;
        run.fails = seed % 2 == 1;
        run.run(lock_requests);
        let what = format!(
            "{lock_requests} attempts on {members} members, seed {seed}: {:?}",
            run.ends
        );
        assert!(run.ends.iter().all(Option::is_some), "{what}");
        assert!(!run.has_one_fence_twice(), "{what}");
        for (end, floor) in run.ends.iter().zip(&run.floors) {
            if let Some(Decision::Won(fence)) = end {
                assert!(Some(*fence) > *floor, "{what}");
            }
        }
        if !run.fails {
            all += lock_requests;
            granted += run.fences().len();
        }
    }
    assert!(
        granted * 100 > all * 99,
        "{granted} of {all}, and no member failed"
    );
}

#[test]
fn fences_are_unique_and_grow() {
    assert_fences_are_unique_and_grow(false);
}

#[test]
fn bare_majority_suffices_for_all_readers() {
    assert_fences_are_unique_and_grow(true);
}

#[test]
fn unattributed_confirmations_duplicate_a_fence() {
    let twice = worlds().filter(|(members, lock_requests, seed)| {
        let mut run = Run::new(*members, *seed);
        run.strict = false;
        run.run(*lock_requests);
        run.has_one_fence_twice()
    });
    assert!(twice.count() > 0, "what this is all for does not happen");
}

/// A ballot of three members.
struct Torn(Ballot);

/// The first two members gave these numbers.
fn torn(one: u64, two: u64) -> Torn {
    let mut ballot = Ballot::held_together(3, 0);
    ballot.vote(0.into(), Vote::Granted(fence(one)));
    ballot.decide(everybody);
    ballot.vote(1.into(), Vote::Granted(fence(two)));
    Torn(ballot)
}

impl Torn {
    fn decide(&mut self) -> Decision {
        self.0.decide(everybody)
    }

    fn confirm(&mut self, member: usize, asked: u64, answer: FenceConfirmation) {
        self.0.confirm(member.into(), fence(asked), Some(answer));
    }

    fn conflict(&mut self, member: usize, asked: u64, taken: u64) {
        self.confirm(member, asked, FenceConfirmation::Conflict(fence(taken)));
    }
}

#[test]
fn conflict_in_bare_majority_leads_to_another_fence() {
    let mut ballot = torn(8, 9);
    ballot.0.vote(2.into(), Vote::Busy);
    assert_eq!(ballot.decide(), asks(9, &[0]));
    ballot.conflict(0, 9, 11);
    assert_eq!(ballot.decide(), asks(12, &[0, 1]));
    ballot.conflict(0, 12, 12);
    assert_eq!(ballot.decide(), Decision::Wait, "the other may say more");
    ballot.confirm(1, 12, FenceConfirmation::Confirmed);
    assert_eq!(ballot.decide(), asks(13, &[0, 1]));
}

#[test]
fn fence_of_another_owner_is_skipped() {
    // A arrives first at the first and the third member, B at the second.
    let mut b = torn(9, 8);
    assert_eq!(b.decide(), asks(9, &[1]));
    b.0.vote(2.into(), Vote::Granted(fence(9)));
    assert_eq!(b.decide(), won(9));

    let mut a = torn(8, 9);
    assert_eq!(a.decide(), asks(9, &[0]));
    a.conflict(0, 9, 11);
    assert_eq!(a.decide(), asks(12, &[0, 1]));
    a.confirm(1, 12, FenceConfirmation::Confirmed);
    assert_eq!(a.decide(), Decision::Wait);
    a.confirm(0, 12, FenceConfirmation::Confirmed);
    assert_eq!(a.decide(), won(12));
}

#[test]
fn late_confirmation_counts_only_as_failure() {
    let mut ballot = torn(8, 9);
    ballot.0.vote(2.into(), Vote::Granted(fence(8)));
    assert_eq!(ballot.decide(), asks(9, &[0, 2]));
    ballot.conflict(0, 9, 9);
    assert_eq!(ballot.decide(), asks(10, &[0, 1, 2]));
    ballot.confirm(2, 9, FenceConfirmation::Confirmed);
    ballot.confirm(0, 10, FenceConfirmation::Confirmed);
    assert_eq!(ballot.decide(), Decision::Wait);
    ballot.0.confirm(1.into(), fence(9), None);
    assert_eq!(ballot.decide(), Decision::Wait);
    ballot.confirm(2, 10, FenceConfirmation::NotHeld);
    assert_eq!(ballot.decide(), Decision::NoQuorum);
}

#[test]
fn repeated_fence_conflicts_end_the_attempt() {
    let mut ballot = torn(8, 9);
    ballot.0.vote(2.into(), Vote::Busy);
    let mut rounds = 0;
    let end = loop {
        match ballot.decide() {
            Decision::Confirm(asked, members) => {
                rounds += 1;
                let taken = Some(FenceConfirmation::Conflict(fence(asked.get() + 7)));
                let each = members.into_iter();
                each.for_each(|member| ballot.0.confirm(member, asked, taken));
            }
            end => break end,
        }
    };
    assert_eq!((rounds, end), (ROUNDS + 1, Decision::Busy));
}
