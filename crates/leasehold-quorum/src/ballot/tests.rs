use super::*;

pub(super) fn fence(value: u64) -> Fence {
    Fence::new(value).unwrap()
}

fn granted(value: u64) -> Vote {
    Vote::Granted(fence(value))
}

/// The decision to have this fence confirmed by these members.
pub(super) fn asks(value: u64, members: &[usize]) -> Decision {
    let members = members.iter().map(|member| (*member).into());
    Decision::Confirm(fence(value), members.collect())
}

pub(super) fn won(value: u64) -> Decision {
    Decision::Won(fence(value))
}

/// A ballot of members that all count, except for one.
struct TestBallot(Ballot, Option<usize>);

impl TestBallot {
    fn new(members: usize) -> Self {
        Self(Ballot::new(members), None)
    }

    fn without(members: usize, untrusted: usize) -> Self {
        Self(Ballot::new(members), Some(untrusted))
    }

    fn vote(&mut self, member: usize, vote: Vote) -> Decision {
        self.0.vote(member.into(), vote);
        self.decide()
    }

    fn confirm(&mut self, member: usize, confirmed: bool) -> Decision {
        let asked = self.0.fence.expect("a fence to confirm");
        self.0.confirm(
            member.into(),
            asked,
            confirmed.then_some(FenceConfirmation::Confirmed),
        );
        self.decide()
    }

    fn decide(&mut self) -> Decision {
        let out = self.1.map(MemberIndex::from);
        self.0.decide(|member| Some(member) != out)
    }
}

#[test]
fn open_ballot_waits_whichever_grants_count() {
    for members in 1..=7 {
        let mut ballot = Ballot::new(members);
        for member in 0..members {
            if ballot.is_open() {
                assert_eq!(
                    ballot.decide(|_| true),
                    Decision::Wait,
                    "{member} of {members}"
                );
                assert_eq!(
                    ballot.decide(|_| false),
                    Decision::Wait,
                    "{member} of {members}"
                );
            }
            ballot.vote(member.into(), Vote::Busy);
        }
        assert!(!ballot.is_open(), "{members}");
    }
}

#[test]
fn untrusted_grant_has_no_effect() {
    let mut ballot = TestBallot::without(3, 1);
    assert_eq!(ballot.vote(0, granted(9)), Decision::Wait);
    assert_eq!(ballot.vote(1, granted(9)), Decision::Wait);
    assert_eq!(ballot.vote(2, Vote::Failed), Decision::NoQuorum);

    let mut ballot = TestBallot::without(3, 1);
    ballot.vote(1, granted(12));
    ballot.vote(0, granted(7));
    assert_eq!(ballot.vote(2, granted(9)), asks(9, &[0]));
    assert_eq!(ballot.confirm(0, true), won(9));
}

#[test]
fn grant_of_untrusted_member_is_withdrawn() {
    let mut ballot = TestBallot::new(3);
    ballot.vote(0, granted(7));
    assert_eq!(ballot.vote(1, granted(9)), asks(9, &[0]));
    ballot.1 = Some(1);
    assert_eq!(ballot.confirm(0, true), Decision::Wait);
    assert_eq!(ballot.vote(2, granted(9)), won(9));
}

#[test]
fn half_of_an_even_set_is_no_majority() {
    let mut ballot = TestBallot::new(4);
    ballot.vote(0, granted(9));
    assert_eq!(ballot.vote(1, granted(9)), Decision::Wait);
    assert_eq!(ballot.vote(2, granted(9)), won(9));
}

fn grant(member: usize, value: u64) -> (usize, Vote) {
    (member, granted(value))
}

fn busy(member: usize) -> (usize, Vote) {
    (member, Vote::Busy)
}

fn lost(member: usize) -> (usize, Vote) {
    (member, Vote::Failed)
}

/// Asserts that the last of these votes decides, and none before it.
#[track_caller]
fn decides<const VOTES: usize>(members: usize, votes: [(usize, Vote); VOTES], decision: Decision) {
    let mut ballot = TestBallot::new(members);
    let decisions = votes.map(|(member, vote)| ballot.vote(member, vote));
    let (last, others) = decisions.split_last().unwrap();
    assert!(others.iter().all(|it| *it == Decision::Wait), "{others:?}");
    assert_eq!(*last, decision);
}

#[test]
fn last_of_these_votes_decides() {
    use Decision::{Busy, NoQuorum};

    // One member decides alone.
    decides(1, [grant(0, 3)], won(3));
    decides(1, [busy(0)], Busy);
    decides(1, [lost(0)], NoQuorum);
    // A majority with one fence wins in one round, and a lower fence is confirmed.
    decides(5, [grant(0, 9), grant(3, 9), grant(1, 9)], won(9));
    decides(3, [grant(0, 7), grant(1, 9)], asks(9, &[0]));
    // A majority became impossible.
    decides(5, [busy(0), grant(1, 3), busy(2), busy(3)], Busy);
    // Two of three answered.
    decides(3, [grant(0, 3), busy(1), lost(2)], Busy);
    // Dead members are no refusal.
    decides(5, [grant(0, 3), lost(1), lost(2), lost(3)], NoQuorum);
    // No majority has answered.
    decides(5, [busy(0), busy(1), lost(2), lost(3), lost(4)], NoQuorum);
    // Three of five have answered.
    decides(5, [busy(0), busy(1), lost(2), grant(3, 1)], Busy);
    // The second vote of a member is ignored.
    let repeated = [grant(0, 3), grant(0, 3), busy(0), grant(1, 3)];
    decides(3, repeated, won(3));
}

#[test]
fn late_grant_with_same_fence_confirms_it() {
    let mut ballot = TestBallot::new(3);
    ballot.vote(0, granted(7));
    assert_eq!(ballot.vote(1, granted(9)), asks(9, &[0]));
    assert_eq!(ballot.vote(2, granted(9)), won(9));
}

#[test]
fn late_greater_grant_may_confirm_the_fence() {
    let mut ballot = TestBallot::new(3);
    ballot.vote(0, granted(7));
    ballot.vote(1, granted(9));
    assert_eq!(ballot.vote(2, granted(12)), asks(9, &[2]));
    assert_eq!(ballot.confirm(0, false), Decision::Wait);
    assert_eq!(ballot.confirm(2, true), won(9));
}

#[test]
fn nothing_is_granted_without_a_confirming_majority() {
    let mut ballot = TestBallot::new(3);
    ballot.vote(0, granted(7));
    ballot.vote(1, granted(9));
    assert_eq!(
        ballot.confirm(0, false),
        Decision::Wait,
        "the third may still come in"
    );
    assert_eq!(ballot.vote(2, Vote::Failed), Decision::NoQuorum);
}
