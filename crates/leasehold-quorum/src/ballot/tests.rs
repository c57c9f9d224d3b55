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

    fn without(members: usize, distrusted: usize) -> Self {
        Self(Ballot::new(members), Some(distrusted))
    }

    fn vote(&mut self, member: usize, vote: Vote) -> Step {
        self.0.vote(member, vote);
        self.step()
    }

    fn confirm(&mut self, member: usize, confirmed: bool) -> Step {
        let asked = self.0.fence.expect("a fence to confirm");
        self.0
            .confirm(member, asked, confirmed.then_some(Seal::Sealed));
        self.step()
    }

    fn step(&mut self) -> Step {
        let out = self.1;
        self.0.step(|member| Some(member) != out)
    }
}

#[test]
fn open_ballot_waits_whichever_grants_count() {
    for members in 1..=7 {
        let mut ballot = Ballot::new(members);
        for member in 0..members {
            if ballot.is_open() {
                assert_eq!(ballot.step(|_| true), Step::Wait, "{member} of {members}");
                assert_eq!(ballot.step(|_| false), Step::Wait, "{member} of {members}");
            }
            ballot.vote(member, Vote::Busy);
        }
        assert!(!ballot.is_open(), "{members}");
    }
}

#[test]
fn a_grant_that_does_not_count_neither_wins_nor_seals_nor_makes_the_lock_busy() {
    let mut ballot = TestBallot::without(3, 1);
    assert_eq!(ballot.vote(0, granted(9)), Step::Wait);
    assert_eq!(ballot.vote(1, granted(9)), Step::Wait);
    assert_eq!(ballot.vote(2, Vote::Failed), Step::NoQuorum);

    let mut ballot = TestBallot::without(3, 1);
    ballot.vote(1, granted(12));
    ballot.vote(0, granted(7));
    assert_eq!(ballot.vote(2, granted(9)), Step::Confirm(fence(9), vec![0]));
    assert_eq!(ballot.confirm(0, true), Step::Won(fence(9)));
}

#[test]
fn a_member_that_falls_into_doubt_takes_its_grant_back() {
    let mut ballot = TestBallot::new(3);
    ballot.vote(0, granted(7));
    assert_eq!(ballot.vote(1, granted(9)), Step::Confirm(fence(9), vec![0]));
    ballot.1 = Some(1);
    assert_eq!(ballot.confirm(0, true), Step::Wait);
    assert_eq!(ballot.vote(2, granted(9)), Step::Won(fence(9)));
}

#[test]
fn a_majority_with_one_fence_wins_in_one_round_without_stragglers() {
    let mut ballot = TestBallot::new(5);
    assert_eq!(ballot.vote(0, granted(9)), Step::Wait);
    assert_eq!(ballot.vote(3, granted(9)), Step::Wait);
    assert_eq!(ballot.vote(1, granted(9)), Step::Won(fence(9)));
}

#[test]
fn half_of_an_even_set_is_no_majority() {
    let mut ballot = TestBallot::new(4);
    ballot.vote(0, granted(9));
    assert_eq!(ballot.vote(1, granted(9)), Step::Wait);
    assert_eq!(ballot.vote(2, granted(9)), Step::Won(fence(9)));
}

#[test]
fn different_fences_are_sealed_where_they_are_lower() {
    let mut ballot = TestBallot::new(3);
    assert_eq!(ballot.vote(0, granted(7)), Step::Wait);
    assert_eq!(ballot.vote(1, granted(9)), Step::Confirm(fence(9), vec![0]));
    assert_eq!(ballot.confirm(0, true), Step::Won(fence(9)));
}

#[test]
fn a_straggler_that_answers_exactly_the_fence_seals_it_too() {
    let mut ballot = TestBallot::new(3);
    ballot.vote(0, granted(7));
    assert_eq!(ballot.vote(1, granted(9)), Step::Confirm(fence(9), vec![0]));
    assert_eq!(ballot.vote(2, granted(9)), Step::Won(fence(9)));
}

#[test]
fn a_greater_straggler_does_not_move_a_fence_that_stands_but_can_seal_it() {
    let mut ballot = TestBallot::new(3);
    ballot.vote(0, granted(7));
    ballot.vote(1, granted(9));
    assert_eq!(
        ballot.vote(2, granted(12)),
        Step::Confirm(fence(9), vec![2])
    );
    assert_eq!(ballot.confirm(0, false), Step::Wait);
    assert_eq!(ballot.confirm(2, true), Step::Won(fence(9)));
}

#[test]
fn without_a_majority_that_sealed_nothing_is_granted() {
    let mut ballot = TestBallot::new(3);
    ballot.vote(0, granted(7));
    ballot.vote(1, granted(9));
    assert_eq!(
        ballot.confirm(0, false),
        Step::Wait,
        "the third may still come in"
    );
    assert_eq!(ballot.vote(2, Vote::Failed), Step::NoQuorum);
}

#[test]
fn busy_is_decided_as_soon_as_a_majority_cannot_be_had() {
    let mut ballot = TestBallot::new(5);
    ballot.vote(0, Vote::Busy);
    ballot.vote(1, granted(3));
    assert_eq!(ballot.vote(2, Vote::Busy), Step::Wait);
    assert_eq!(ballot.vote(3, Vote::Busy), Step::Busy);
}

#[test]
fn a_split_vote_is_busy_and_dead_members_are_not() {
    let mut split = TestBallot::new(3);
    split.vote(0, granted(3));
    split.vote(1, Vote::Busy);
    assert_eq!(
        split.vote(2, Vote::Failed),
        Step::Busy,
        "two of three answered"
    );

    let mut dead = TestBallot::new(5);
    dead.vote(0, granted(3));
    dead.vote(1, Vote::Failed);
    dead.vote(2, Vote::Failed);
    assert_eq!(dead.vote(3, Vote::Failed), Step::NoQuorum);
}

#[test]
fn busy_members_beside_silent_ones_are_not_busy_before_the_silent_ones_are_known() {
    let mut ballot = TestBallot::new(5);
    ballot.vote(0, Vote::Busy);
    ballot.vote(1, Vote::Busy);
    assert_eq!(
        ballot.vote(2, Vote::Failed),
        Step::Wait,
        "no majority has answered"
    );
    assert_eq!(ballot.vote(3, Vote::Failed), Step::Wait);
    assert_eq!(ballot.vote(4, Vote::Failed), Step::NoQuorum);

    let mut ballot = TestBallot::new(5);
    ballot.vote(0, Vote::Busy);
    ballot.vote(1, Vote::Busy);
    ballot.vote(2, Vote::Failed);
    assert_eq!(
        ballot.vote(3, granted(1)),
        Step::Busy,
        "three of five have answered"
    );
}

#[test]
fn a_second_vote_of_the_same_member_counts_for_nothing() {
    let mut ballot = TestBallot::new(3);
    assert_eq!(ballot.vote(0, granted(3)), Step::Wait);
    assert_eq!(ballot.vote(0, granted(3)), Step::Wait);
    assert_eq!(ballot.vote(0, Vote::Busy), Step::Wait);
    assert_eq!(ballot.vote(1, granted(3)), Step::Won(fence(3)));
}

#[test]
fn a_quorum_of_one_decides_alone() {
    assert_eq!(TestBallot::new(1).vote(0, granted(3)), Step::Won(fence(3)));
    assert_eq!(TestBallot::new(1).vote(0, Vote::Busy), Step::Busy);
    assert_eq!(TestBallot::new(1).vote(0, Vote::Failed), Step::NoQuorum);
}
