use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::member::{
    DataGeneration, MemberId, MemberRecord, MemberSet, MemberStatus, Observation,
};
use leasehold::{Error, ErrorKind};
use leasehold_redis::{Examination, MissingRight, Need};

use super::super::quorum::{of_server, of_store};
use super::super::snapshot::{NoVote, Server, Snapshot, is_uninitialized};
use super::well;
use crate::output::expect_finding::{all_green, expect, expect_none, green, red, yellow};
use crate::output::finding::Finding;
use crate::output::finding::Verdict::{Green, Red, Yellow};

const IDS: [&str; 5] = ["a", "b", "c", "d", "e"];

fn set(count: usize, max_ttl: u64) -> MemberSet {
    let ids = IDS[..count].iter().map(|id| MemberId::new(*id));
    let tolerance = Duration::from_millis(250);
    MemberSet::new(ids, Duration::from_secs(max_ttl), tolerance)
}

fn member_record(set: MemberSet, generation: u64) -> MemberRecord {
    let clock = WallTime::from_micros(1);
    MemberRecord {
        set,
        generation,
        changed: clock,
        data_generation: DataGeneration::parse("0123456789abcdef").unwrap(),
        since: WallTime::from_micros(0),
        run: leasehold::member::RunId::new("run"),
        durable: true,
        observations: Default::default(),
    }
}

/// This many servers without problems.
fn snapshot(count: usize) -> Snapshot {
    let server = |id: &&str| {
        let mut found = well(id);
        let status = found.status.as_mut().unwrap();
        status.member_record = (count >= 3).then(|| member_record(set(count, 60), 1));
        Server {
            id: MemberId::new(*id),
            found: Ok(found),
            out: None,
        }
    };
    Snapshot {
        set: set(count, 60),
        is_uninitialized: false,
        servers: IDS[..count].iter().map(server).collect(),
        requests_in: (count >= 3).then_some(Duration::ZERO),
    }
}

fn put_out(snapshot: &mut Snapshot, index: usize, again: Option<u64>) {
    snapshot.servers[index].out = Some(NoVote {
        why: "restarted".into(),
        again: again.map(Duration::from_secs),
    });
}

fn kill(snapshot: &mut Snapshot, index: usize) {
    snapshot.servers[index].found = Err(Error::new(ErrorKind::Unreachable, "no connection"));
    put_out(snapshot, index, None);
}

fn examined(snapshot: &mut Snapshot, index: usize) -> &mut Examination {
    snapshot.servers[index].found.as_mut().unwrap()
}

fn status(snapshot: &mut Snapshot, index: usize) -> &mut MemberStatus {
    examined(snapshot, index).status.as_mut().unwrap()
}

#[test]
fn once_needs_durable_and_old_servers() {
    let mut snapshot = snapshot(3);
    green(&of_store(&snapshot), "once", "possible");
    snapshot.requests_in = Some(Duration::from_secs(90));
    yellow(&of_store(&snapshot), "once", "possible in 1m 30s");
    yellow(&of_store(&snapshot), "once", "wait");
    let record = status(&mut snapshot, 1).member_record.as_mut().unwrap();
    record.since = WallTime::from_micros(1);
    yellow(&of_store(&snapshot), "once", "run `leasehold init` now");
    snapshot.requests_in = None;
    yellow(&of_store(&snapshot), "once", "not possible");
    let mut silent = self::snapshot(3);
    silent.requests_in = None;
    kill(&mut silent, 0);
    kill(&mut silent, 1);
    expect_none(&of_store(&silent), "once");
    snapshot.is_uninitialized = true;
    expect_none(&of_store(&snapshot), "once");
}

fn first(snapshot: &Snapshot) -> Vec<Finding> {
    of_server(snapshot, 0)
}

#[test]
fn three_that_are_well_are_green() {
    let three = snapshot(3);
    all_green(&of_store(&three));
    (0..3).for_each(|index| all_green(&of_server(&three, index)));
    green(&first(&three), "restart", "may be restarted now");
}

#[test]
fn server_whose_id_another_one_has_is_red() {
    let mut three = snapshot(3);
    let later = Observation {
        data_generation: DataGeneration::parse("1123456789abcdef").unwrap(),
        at: WallTime::from_micros(1),
        changed: true,
    };
    let record = status(&mut three, 1).member_record.as_mut().unwrap();
    record.observations.insert(MemberId::new("a"), later);
    red(
        &first(&three),
        "record",
        "b knows a later server with the id a",
    );
    red(&first(&three), "record", "leasehold members readmit a");
}

#[test]
fn few_servers_and_an_even_number_are_yellow() {
    for (count, advice) in [(1, "init"), (2, "init"), (4, "one server")] {
        yellow(&of_store(&snapshot(count)), "members", advice);
    }
}

#[test]
fn missing_majority_is_red_and_says_how_long() {
    let mut three = snapshot(3);
    kill(&mut three, 2);
    green(&of_store(&three), "quorum", "");
    put_out(&mut three, 0, Some(30));
    red(&of_store(&three), "quorum", "-> wait 30s.");
    put_out(&mut three, 0, None);
    red(&of_store(&three), "quorum", "fix what is red");
    assert_eq!(of_server(&three, 2).len(), 1, "nothing else is known of it");
    // Two must regain their votes, and the second one does after 40 s.
    let mut five = snapshot(5);
    for (index, again) in [(0, Some(50)), (1, None), (2, Some(10)), (3, Some(40))] {
        put_out(&mut five, index, again);
    }
    red(&of_store(&five), "quorum", "-> wait 40s.");
}

#[test]
fn a_set_without_cards_is_to_be_formed() {
    let mut three = snapshot(3);
    three.is_uninitialized = true;
    for index in 0..3 {
        status(&mut three, index).member_record = None;
        put_out(&mut three, index, None);
    }
    red(&of_store(&three), "quorum", "-> leasehold init.");
    let first = first(&three);
    yellow(&first, "record", "-> leasehold init.");
    expect_none(&first, "vote");
    expect_none(&first, "restart");
}

#[test]
fn a_card_that_differs_is_red_with_both() {
    let mut three = snapshot(3);
    status(&mut three, 0).member_record = Some(member_record(set(3, 20), 1));
    for limit in [
        "(max_ttl 20s",
        "; this client is configured with a,b,c (max_ttl 1m",
    ] {
        red(&first(&three), "record", limit);
    }
    status(&mut three, 0).member_record = None;
    yellow(&first(&three), "record", "");
    let mut alone = snapshot(1);
    status(&mut alone, 0).member_record = Some(member_record(set(3, 60), 1));
    red(&first(&alone), "record", "all servers of the quorum");
}

#[test]
fn server_claimed_by_another_quorum_is_red() {
    let of_others = |ids: [&str; 3], generation| {
        let mut three = snapshot(3);
        let mut theirs = set(3, 60);
        theirs.ids = ids.map(MemberId::new).to_vec();
        status(&mut three, 2).member_record = Some(member_record(theirs, generation));
        three
    };
    let claimed = of_others(["a", "c", "x"], 1);
    for part in [
        "two quorums",
        "record of c (generation 1) names a,c,x",
        "that is the one of c, run DEL leasehold:member_record there.",
    ] {
        red(&first(&claimed), "record", part);
    }
    // A server that the member record does not name, or whose own member record is newer, gets no such finding.
    green(&of_server(&claimed, 1), "record", "");
    green(&first(&of_others(["c", "x", "y"], 1)), "record", "");
    green(&first(&of_others(["a", "c", "x"], 0)), "record", "");
}

#[test]
fn cards_of_two_generations_are_yellow() {
    let mut three = snapshot(3);
    status(&mut three, 1).member_record = Some(member_record(set(3, 60), 2));
    yellow(&of_store(&three), "generation", "1 on a, 2 on b;");
    // There is no such finding for a quorum that is not initialized, or for too few servers.
    three.is_uninitialized = true;
    expect_none(&of_store(&three), "generation");
    let mut two = snapshot(2);
    for index in 0..2 {
        status(&mut two, index).member_record = Some(member_record(set(3, 60), 1));
    }
    expect_none(&of_store(&two), "generation");
}

#[test]
fn clocks_are_held_against_the_lower_median() {
    let with = |micros: &[i64]| {
        let mut snapshot = snapshot(micros.len());
        for (index, offset) in micros.iter().enumerate() {
            examined(&mut snapshot, index).clock_offset = Some(*offset);
        }
        snapshot
    };
    for (offset, verdict) in [(100_000, Green), (-200_000, Yellow), (300_000, Red)] {
        expect(&first(&with(&[offset, 0, 0])), "clock", verdict, "");
    }
    let four = with(&[300_000, 300_000, 0, 0]);
    red(&of_server(&four, 1), "clock", "");
    green(&of_server(&four, 2), "clock", "");
    let all = with(&[5_000_000; 3]);
    green(&first(&all), "clock", "");
    yellow(&of_store(&all), "own_clock", "5s behind the servers");
    for days in [3, -3] {
        let days = with(&[days * 86_400_000_000; 3]);
        red(&of_store(&days), "own_clock", "");
    }
}

#[test]
fn wrong_clock_gives_no_time_to_wait() {
    let with_wrong_clock = |count| {
        let mut snapshot = snapshot(count);
        examined(&mut snapshot, 1).clock_offset = Some(5_000_000);
        (1..count).for_each(|index| put_out(&mut snapshot, index, Some(61)));
        snapshot.expect_nothing_of_wrong_clocks();
        snapshot
    };
    let three = with_wrong_clock(3);
    red(&of_server(&three, 1), "vote", "no vote: restarted;");
    yellow(&of_server(&three, 2), "vote", "no vote for 1m 1s");
    yellow(&first(&three), "restart", "fix the other servers");
    // The other one is enough for a majority.
    red(&of_store(&three), "quorum", "-> wait 1m 1s.");
    // The rules of clocks do not apply to only two servers.
    yellow(
        &of_server(&with_wrong_clock(2), 1),
        "vote",
        "no vote for 1m 1s",
    );
}

#[test]
fn server_without_vote_says_why_and_how_long() {
    let mut three = snapshot(3);
    put_out(&mut three, 0, Some(30));
    yellow(&first(&three), "vote", "no vote for 30s: restarted;");
    put_out(&mut three, 0, None);
    yellow(&first(&three), "vote", "");
    examined(&mut three, 0).server.as_mut().unwrap().is_primary = false;
    red(&first(&three), "vote", "");
}

#[test]
fn unreadable_record_is_not_a_missing_one() {
    let mut three = snapshot(3);
    (0..3).for_each(|index| status(&mut three, index).member_record = None);
    let found = |snapshot: &Snapshot| -> Vec<_> {
        let servers = snapshot.servers.iter();
        servers.map(|server| server.found.clone()).collect()
    };
    assert!(is_uninitialized(&found(&three)));
    examined(&mut three, 0).missing_rights.push(MissingRight {
        rule: "+hgetall".into(),
        need: Need::Sets,
    });
    assert!(!is_uninitialized(&found(&three)));
    red(&first(&three), "rights", "");
    expect_none(&first(&three), "record");
    yellow(&of_server(&three, 1), "record", "");
}

#[test]
fn restart_of_one_in_five_keeps_the_majority() {
    let mut five = snapshot(5);
    put_out(&mut five, 1, Some(30));
    let one = "; b has no vote: after a restart, no further server may fail ->";
    yellow(&first(&five), "restart", one);
    put_out(&mut five, 2, Some(30));
    let two = "; b, c have no vote: without this server there is no majority ->";
    yellow(&first(&five), "restart", two);
    // The restart of a server without a vote loses no vote.
    yellow(&of_server(&five, 2), "restart", one);
}

#[test]
fn moved_server_is_named_with_its_address() {
    let mut three = snapshot(3);
    three.servers[1].id = MemberId::new("b").at("new:1");
    status(&mut three, 1).member_record = Some(member_record(set(3, 60), 2));
    let text = "1 on a, 2 on new:1 (id b);";
    yellow(&of_store(&three), "generation", text);
    put_out(&mut three, 1, Some(30));
    yellow(&first(&three), "restart", "; new:1 (id b) has no vote: ");
}

#[test]
fn a_restart_waits_for_the_others() {
    let mut three = snapshot(3);
    put_out(&mut three, 1, Some(30));
    yellow(&first(&three), "restart", "-> wait 30s before a restart.");
    green(&of_server(&three, 1), "restart", "");
    put_out(&mut three, 2, Some(45));
    yellow(&first(&three), "restart", "-> wait 45s before a restart.");
    put_out(&mut three, 2, None);
    yellow(&first(&three), "restart", "fix the other servers");
    let mut forgetful = snapshot(3);
    status(&mut forgetful, 0).durable = false;
    green(&first(&forgetful), "restart", "has no vote for 1m 1s");
    let mut alone = snapshot(1);
    green(&first(&alone), "restart", "");
    status(&mut alone, 0).durable = false;
    yellow(&first(&alone), "restart", "");
}
