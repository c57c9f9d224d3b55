//! Two servers under one id: a server was replaced twice, or a list with another server was used too early.

use super::*;

/// A quorum of three servers, and empty ones which lists name in place of the third.
fn with_spares(spares: usize) -> Fixture {
    let mut fixture = Fixture::new(3);
    for _ in 0..spares {
        let mut spare = fixture.servers[2].clone();
        spare.run += 100 * fixture.servers.len() as u64;
        spare.member_record = None;
        fixture.servers.push(spare);
    }
    fixture
}

/// A client with a list of servers for the ids `m0`, `m1` and `m2`.
struct ListClient {
    list: [usize; 3],
    trust: Trust,
}

impl ListClient {
    fn new(third: usize) -> Self {
        Self {
            list: [0, 1, third],
            trust: Trust::new(ids(3), set(3), true),
        }
    }

    /// Asks the servers that it reaches, by their positions in the list.
    fn meet(&mut self, fixture: &mut Fixture, reached: &[usize]) {
        for index in reached {
            fixture.now += 1;
            let status = fixture.status(self.list[*index]);
            self.trust.present((*index).into(), status, fixture.at());
        }
    }

    /// Does what it can about the records, at the servers that it reaches.
    fn work(&mut self, fixture: &mut Fixture, reached: &[usize]) {
        self.meet(fixture, reached);
        for _ in 0..10 {
            for step in self.trust.member_record_steps(&RandomEntropy) {
                let index = usize::from(step.member());
                if !reached.contains(&index) {
                    self.trust.missed(index.into());
                    continue;
                }
                fixture.carry_out(self.list[index], step);
                self.meet(fixture, &[index]);
            }
        }
    }

    fn verdict(&self, fixture: &Fixture, index: usize) -> Result<(), UntrustedReason> {
        self.trust.counts(index.into(), fixture.ours(), None)
    }

    /// How many of these servers have a vote for it, after all waits are over.
    fn votes(&mut self, fixture: &mut Fixture, reached: &[usize]) -> usize {
        self.work(fixture, reached);
        fixture.pass(62);
        self.work(fixture, reached);
        let votes = reached.iter();
        votes
            .filter(|it| self.verdict(fixture, **it).is_ok())
            .count()
    }
}

/// Each client reaches another of the two servers that both know, and its own third.
fn assert_no_two_majorities(mut fixture: Fixture, thirds: [usize; 2]) {
    let [mut former, mut latter] = thirds.map(ListClient::new);
    // In both orders, since each looks at what the other one did.
    for _ in 0..2 {
        let votes = [
            former.votes(&mut fixture, &[0, 2]),
            latter.votes(&mut fixture, &[1, 2]),
        ];
        assert!(votes != [2, 2], "both have a majority");
    }
}

fn is_replaced(verdict: &Result<(), UntrustedReason>) -> bool {
    matches!(verdict, Err(UntrustedReason::Replaced { .. }))
}

#[test]
fn early_list_takes_the_id_over() {
    let mut fixture = with_spares(1);
    let [mut former, mut latter] = [2, 3].map(ListClient::new);
    former.work(&mut fixture, &[0, 1, 2]);
    latter.work(&mut fixture, &[0, 1, 2]);
    fixture.pass(62);
    former.work(&mut fixture, &[0, 1, 2]);
    latter.work(&mut fixture, &[0, 1, 2]);
    let verdict = former.verdict(&fixture, 2);
    assert!(is_replaced(&verdict), "{verdict:?}");
    let text = verdict.unwrap_err().to_string();
    assert!(text.contains("a later server with the id m2"), "{text}");
    // The two others go on for both, and the later server has a vote.
    for index in [0, 1] {
        assert_eq!(former.verdict(&fixture, index), Ok(()));
    }
    for index in 0..3 {
        assert_eq!(latter.verdict(&fixture, index), Ok(()));
    }
    assert_no_two_majorities(fixture, [2, 3]);
}

#[test]
fn early_list_that_reaches_one_server_gets_no_vote() {
    for told in [&[][..], &[1][..]] {
        let mut fixture = with_spares(1);
        let mut latter = ListClient::new(3);
        latter.meet(&mut fixture, &[0, 1]);
        latter.work(&mut fixture, &[2]);
        latter.work(&mut fixture, told);
        assert_no_two_majorities(fixture, [2, 3]);
    }
}

#[test]
fn split_at_any_step_gives_one_majority() {
    for steps in 0..8 {
        let mut fixture = with_spares(1);
        let mut latter = ListClient::new(3);
        latter.meet(&mut fixture, &[0, 1, 2]);
        for _ in 0..steps {
            let next = latter.trust.member_record_steps(&RandomEntropy);
            let Some(step) = next.into_iter().next() else {
                break;
            };
            let index = usize::from(step.member());
            fixture.carry_out(latter.list[index], step);
            latter.meet(&mut fixture, &[index]);
        }
        assert_no_two_majorities(fixture, [2, 3]);
    }
}

#[test]
fn member_replaced_twice_has_one_server() {
    let mut fixture = with_spares(2);
    for third in [3, 4] {
        ListClient::new(third).work(&mut fixture, &[0, 1, 2]);
    }
    fixture.pass(62);
    let mut first = ListClient::new(3);
    first.work(&mut fixture, &[0, 1, 2]);
    assert!(is_replaced(&first.verdict(&fixture, 2)));
    let mut second = ListClient::new(4);
    second.work(&mut fixture, &[0, 1, 2]);
    assert_eq!(second.verdict(&fixture, 2), Ok(()));
    assert_no_two_majorities(fixture, [3, 4]);
}

#[test]
fn replaced_server_does_not_return_after_a_restart() {
    let mut fixture = with_spares(1);
    ListClient::new(3).work(&mut fixture, &[0, 1, 2]);
    fixture.restart(2, true);
    let mut former = ListClient::new(2);
    former.work(&mut fixture, &[0, 1, 2]);
    assert!(is_replaced(&former.verdict(&fixture, 2)));
    assert_no_two_majorities(fixture, [2, 3]);
}

/// Also of a member that lost its data and has not heard of the former server since.
#[test]
fn admission_voids_answers_that_others_gave_before() {
    for has_noted_it in [true, false] {
        let mut fixture = with_spares(1);
        let mut former = ListClient::new(2);
        former.work(&mut fixture, &[0, 1, 2]);
        if !has_noted_it {
            let record = fixture.servers[0].member_record.as_mut().unwrap();
            record.observations.clear();
        }
        let known = fixture.status(0).incarnation();
        ListClient::new(3).work(&mut fixture, &[0, 1, 2]);
        let incarnation = fixture.status(0).incarnation();
        assert_ne!(incarnation, known);
        let sample = Sample {
            clock: fixture.wall(0),
            incarnation: incarnation.clone(),
        };
        let (at, now) = (fixture.at(), fixture.ours());
        assert!(former.trust.sample(0.into(), &sample, at).must_look);
        let verdict = former.trust.counts(0.into(), now, Some(&incarnation));
        assert_eq!(verdict, Err(UntrustedReason::Changed));
    }
}

#[test]
fn unfinished_replacement_is_undone_if_a_majority_knows_the_former() {
    let mut fixture = Fixture::met(5);
    // A client with another list told one of four others.
    let own = fixture.record(4).data_generation;
    let drawn = DataGeneration::admitted([own], &RandomEntropy);
    fixture.observe(0, &[(MemberId::new("m4"), drawn)]);
    fixture.meet_all();
    assert!(is_replaced(&fixture.counts(4)));
    fixture.keep_member_records();
    assert!(fixture.forgot(4).as_secs() >= 60);
    fixture.pass(62);
    fixture.all_count();
}

#[test]
fn member_that_lost_its_data_waits_from_its_admission() {
    let mut fixture = Fixture::met(3);
    fixture.restart(1, false);
    let mut client = ListClient::new(2);
    client.meet(&mut fixture, &[0, 2]);
    client.work(&mut fixture, &[1]);
    assert!(!fixture.record(1).is_formed());
    fixture.meet(1);
    // Leases of earlier clients may count on the others until they know it.
    fixture.pass(55);
    fixture.meet_all();
    fixture.keep_member_records();
    assert!(fixture.record(1).is_formed());
    assert!(fixture.forgot(1).as_secs() >= 60);
}
