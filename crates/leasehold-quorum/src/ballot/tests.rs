use super::*;

fn fence(value: u64) -> Fence {
    Fence::new(value).unwrap()
}

fn granted(value: u64) -> Vote {
    Vote::Granted(fence(value))
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
    assert_eq!(
        ballot.vote(2, granted(9)),
        Decision::Confirm(fence(9), vec![0.into()])
    );
    assert_eq!(ballot.confirm(0, true), Decision::Won(fence(9)));
}

#[test]
fn grant_of_untrusted_member_is_withdrawn() {
    let mut ballot = TestBallot::new(3);
    ballot.vote(0, granted(7));
    assert_eq!(
        ballot.vote(1, granted(9)),
        Decision::Confirm(fence(9), vec![0.into()])
    );
    ballot.1 = Some(1);
    assert_eq!(ballot.confirm(0, true), Decision::Wait);
    assert_eq!(ballot.vote(2, granted(9)), Decision::Won(fence(9)));
}

#[test]
fn majority_with_one_fence_wins_in_one_round() {
    let mut ballot = TestBallot::new(5);
    assert_eq!(ballot.vote(0, granted(9)), Decision::Wait);
    assert_eq!(ballot.vote(3, granted(9)), Decision::Wait);
    assert_eq!(ballot.vote(1, granted(9)), Decision::Won(fence(9)));
}

#[test]
fn half_of_an_even_set_is_no_majority() {
    let mut ballot = TestBallot::new(4);
    ballot.vote(0, granted(9));
    assert_eq!(ballot.vote(1, granted(9)), Decision::Wait);
    assert_eq!(ballot.vote(2, granted(9)), Decision::Won(fence(9)));
}

#[test]
fn different_fences_are_confirmed_where_lower() {
    let mut ballot = TestBallot::new(3);
    assert_eq!(ballot.vote(0, granted(7)), Decision::Wait);
    assert_eq!(
        ballot.vote(1, granted(9)),
        Decision::Confirm(fence(9), vec![0.into()])
    );
    assert_eq!(ballot.confirm(0, true), Decision::Won(fence(9)));
}

#[test]
fn late_grant_with_same_fence_confirms_it() {
    let mut ballot = TestBallot::new(3);
    ballot.vote(0, granted(7));
    assert_eq!(
        ballot.vote(1, granted(9)),
        Decision::Confirm(fence(9), vec![0.into()])
    );
    assert_eq!(ballot.vote(2, granted(9)), Decision::Won(fence(9)));
}

#[test]
fn late_greater_grant_may_confirm_the_fence() {
    let mut ballot = TestBallot::new(3);
    ballot.vote(0, granted(7));
    ballot.vote(1, granted(9));
    assert_eq!(
        ballot.vote(2, granted(12)),
        Decision::Confirm(fence(9), vec![2.into()])
    );
    assert_eq!(ballot.confirm(0, false), Decision::Wait);
    assert_eq!(ballot.confirm(2, true), Decision::Won(fence(9)));
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

#[test]
fn busy_is_decided_once_majority_is_impossible() {
    let mut ballot = TestBallot::new(5);
    ballot.vote(0, Vote::Busy);
    ballot.vote(1, granted(3));
    assert_eq!(ballot.vote(2, Vote::Busy), Decision::Wait);
    assert_eq!(ballot.vote(3, Vote::Busy), Decision::Busy);
}

#[test]
fn split_vote_is_busy_dead_members_are_not() {
    let mut split = TestBallot::new(3);
    split.vote(0, granted(3));
    split.vote(1, Vote::Busy);
    assert_eq!(
        split.vote(2, Vote::Failed),
        Decision::Busy,
        "two of three answered"
    );

    let mut dead = TestBallot::new(5);
    dead.vote(0, granted(3));
    dead.vote(1, Vote::Failed);
    dead.vote(2, Vote::Failed);
    assert_eq!(dead.vote(3, Vote::Failed), Decision::NoQuorum);
}

#[test]
fn silent_members_delay_the_busy_decision() {
    let mut ballot = TestBallot::new(5);
    ballot.vote(0, Vote::Busy);
    ballot.vote(1, Vote::Busy);
    assert_eq!(
        ballot.vote(2, Vote::Failed),
        Decision::Wait,
        "no majority has answered"
    );
    assert_eq!(ballot.vote(3, Vote::Failed), Decision::Wait);
    assert_eq!(ballot.vote(4, Vote::Failed), Decision::NoQuorum);

    let mut ballot = TestBallot::new(5);
    ballot.vote(0, Vote::Busy);
    ballot.vote(1, Vote::Busy);
    ballot.vote(2, Vote::Failed);
    assert_eq!(
        ballot.vote(3, granted(1)),
        Decision::Busy,
        "three of five have answered"
    );
}

#[test]
fn second_vote_of_a_member_is_ignored() {
    let mut ballot = TestBallot::new(3);
    assert_eq!(ballot.vote(0, granted(3)), Decision::Wait);
    assert_eq!(ballot.vote(0, granted(3)), Decision::Wait);
    assert_eq!(ballot.vote(0, Vote::Busy), Decision::Wait);
    assert_eq!(ballot.vote(1, granted(3)), Decision::Won(fence(3)));
}

#[test]
fn a_quorum_of_one_decides_alone() {
    assert_eq!(
        TestBallot::new(1).vote(0, granted(3)),
        Decision::Won(fence(3))
    );
    assert_eq!(TestBallot::new(1).vote(0, Vote::Busy), Decision::Busy);
    assert_eq!(TestBallot::new(1).vote(0, Vote::Failed), Decision::NoQuorum);
}
