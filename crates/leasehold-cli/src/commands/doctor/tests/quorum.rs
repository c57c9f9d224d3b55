use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::store::{DataGeneration, MemberId, MemberRecord, MemberSet};
use leasehold::{Error, ErrorKind};
use leasehold_redis::{MissingRight, Need};

use super::{all_green, finding, remedy, well};
use crate::commands::doctor::finding::Finding;
use crate::commands::doctor::finding::Verdict::{Green, Red, Yellow};
use crate::commands::doctor::quorum::{of_server, of_store};
use crate::commands::doctor::snapshot::{NoVote, Server, Snapshot, is_uninitialized};

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
        since: clock,
        run: leasehold::store::RunId::new("run"),
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
    }
}

fn put_out(snapshot: &mut Snapshot, place: usize, again: Option<u64>) {
    snapshot.servers[place].out = Some(NoVote {
        why: "restarted".into(),
        again: again.map(Duration::from_secs),
    });
}

fn kill(snapshot: &mut Snapshot, place: usize) {
    snapshot.servers[place].found = Err(Error::new(ErrorKind::Unreachable, "no connection"));
    put_out(snapshot, place, None);
}

fn of_first(snapshot: &Snapshot) -> Vec<Finding> {
    of_server(snapshot, 0)
}

#[test]
fn three_that_are_well_are_green() {
    let three = snapshot(3);
    all_green(&of_store(&three));
    for place in 0..3 {
        all_green(&of_server(&three, place));
    }
    let restart = of_first(&three);
    let text = &finding(&restart, "restart", Green).found;
    assert!(text.contains("may be restarted now"), "{text}");
}

#[test]
fn few_servers_and_an_even_number_are_yellow() {
    for count in [1, 2] {
        assert!(remedy(&of_store(&snapshot(count)), "members", Yellow).contains("init"));
    }
    assert!(remedy(&of_store(&snapshot(4)), "members", Yellow).contains("one server"));
}

#[test]
fn missing_majority_is_red_and_says_how_long() {
    let mut three = snapshot(3);
    kill(&mut three, 2);
    finding(&of_store(&three), "quorum", Green);
    put_out(&mut three, 0, Some(30));
    let store = of_store(&three);
    assert_eq!(remedy(&store, "quorum", Red), "wait 30s");
    put_out(&mut three, 0, None);
    assert!(remedy(&of_store(&three), "quorum", Red).contains("fix what is red"));
    let gone = of_server(&three, 2);
    assert_eq!(gone.len(), 1, "nothing else is known of it");
    // Two must regain their votes, and the second one does after 40 s.
    let mut five = snapshot(5);
    for (place, again) in [(0, Some(50)), (1, None), (2, Some(10)), (3, Some(40))] {
        put_out(&mut five, place, again);
    }
    let store = of_store(&five);
    assert_eq!(remedy(&store, "quorum", Red), "wait 40s");
}

#[test]
fn a_set_without_cards_is_to_be_formed() {
    let mut three = snapshot(3);
    three.is_uninitialized = true;
    for place in 0..3 {
        let found = three.servers[place].found.as_mut().unwrap();
        found.status.as_mut().unwrap().member_record = None;
        put_out(&mut three, place, None);
    }
    assert_eq!(remedy(&of_store(&three), "quorum", Red), "leasehold init");
    let first = of_first(&three);
    assert_eq!(remedy(&first, "record", Yellow), "leasehold init");
    assert!(
        first
            .iter()
            .all(|it| !["vote", "restart"].contains(&it.check))
    );
}

#[test]
fn a_card_that_differs_is_red_with_both() {
    let mut three = snapshot(3);
    let found = three.servers[0].found.as_mut().unwrap();
    found.status.as_mut().unwrap().member_record = Some(member_record(set(3, 20), 1));
    let findings = of_first(&three);
    let record_of_set = finding(&findings, "record", Red);
    let why = &record_of_set.advice.as_ref().unwrap().why;
    assert!(record_of_set.found.contains("max_ttl 20s") && why.contains("max_ttl 60s"));
    let found = three.servers[0].found.as_mut().unwrap();
    found.status.as_mut().unwrap().member_record = None;
    finding(&of_first(&three), "record", Yellow);
    let mut alone = snapshot(1);
    let found = alone.servers[0].found.as_mut().unwrap();
    found.status.as_mut().unwrap().member_record = Some(member_record(set(3, 60), 1));
    assert!(remedy(&of_first(&alone), "record", Red).contains("all servers of the quorum"));
}

#[test]
fn server_claimed_by_another_quorum_is_red() {
    let of_others = |ids: [&str; 3], generation| {
        let mut three = snapshot(3);
        let mut theirs = set(3, 60);
        theirs.ids = ids.map(MemberId::new).to_vec();
        let found = three.servers[2].found.as_mut().unwrap();
        found.status.as_mut().unwrap().member_record = Some(member_record(theirs, generation));
        three
    };
    let findings = of_first(&of_others(["a", "c", "x"], 1));
    let text = &finding(&findings, "record", Red).found;
    assert!(
        text.contains("two quorums") && text.contains("record of c (generation 1) names a,c,x"),
        "{text}"
    );
    assert!(
        remedy(&findings, "record", Red)
            .ends_with("that is the one of c, run DEL leasehold:member_record there")
    );
    // A server that the member record does not name, or whose own member record is newer, gets no such finding.
    finding(
        &of_server(&of_others(["a", "c", "x"], 1), 1),
        "record",
        Green,
    );
    finding(&of_first(&of_others(["c", "x", "y"], 1)), "record", Green);
    finding(&of_first(&of_others(["a", "c", "x"], 0)), "record", Green);
}

#[test]
fn cards_of_two_generations_are_yellow() {
    let mut three = snapshot(3);
    let found = three.servers[1].found.as_mut().unwrap();
    found.status.as_mut().unwrap().member_record = Some(member_record(set(3, 60), 2));
    let store = of_store(&three);
    let text = &finding(&store, "generation", Yellow).found;
    assert_eq!(text, "1 on a, 2 on b");
    // There is no such finding for a quorum that is not initialized, or for too few servers.
    three.is_uninitialized = true;
    let mut two = snapshot(2);
    for server in &mut two.servers {
        let found = server.found.as_mut().unwrap();
        found.status.as_mut().unwrap().member_record = Some(member_record(set(3, 60), 1));
    }
    for snapshot in [three, two] {
        assert!(
            of_store(&snapshot)
                .iter()
                .all(|it| it.check != "generation")
        );
    }
}

#[test]
fn server_listed_twice_is_red_on_both() {
    let mut three = snapshot(3);
    let run = three.servers[1].status().unwrap().run.clone();
    let found = three.servers[0].found.as_mut().unwrap();
    found.status.as_mut().unwrap().run = run;
    for (place, duplicate) in [(0, "b"), (1, "a")] {
        let findings = of_server(&three, place);
        let text = &finding(&findings, "same_server", Red).found;
        assert!(text.ends_with(duplicate), "{text}");
    }
    finding(&of_server(&three, 2), "same_server", Green);
}

#[test]
fn clocks_are_held_against_the_lower_median() {
    let with = |micros: [i64; 3]| {
        let mut three = snapshot(3);
        for (server, offset) in three.servers.iter_mut().zip(micros) {
            server.found.as_mut().unwrap().clock_offset = Some(offset);
        }
        three
    };
    finding(&of_first(&with([100_000, 0, 0])), "clock", Green);
    finding(&of_first(&with([-200_000, 0, 0])), "clock", Yellow);
    finding(&of_first(&with([300_000, 0, 0])), "clock", Red);
    let mut four = snapshot(4);
    for place in [0, 1] {
        four.servers[place].found.as_mut().unwrap().clock_offset = Some(300_000);
    }
    for (place, verdict) in [(1, Red), (2, Green)] {
        finding(&of_server(&four, place), "clock", verdict);
    }
    let all = with([5_000_000; 3]);
    finding(&of_first(&all), "clock", Green);
    let store = of_store(&all);
    let text = &finding(&store, "own_clock", Yellow).found;
    assert!(text.contains("5.0s behind the servers"), "{text}");
    for days in [3, -3] {
        let days = with([days * 86_400_000_000; 3]);
        finding(&of_store(&days), "own_clock", Red);
    }
}

#[test]
fn wrong_clock_gives_no_time_to_wait() {
    let mut three = snapshot(3);
    let wrong = three.servers[1].found.as_mut().unwrap();
    wrong.clock_offset = Some(5_000_000);
    put_out(&mut three, 1, Some(61));
    put_out(&mut three, 2, Some(61));
    three.expect_nothing_of_wrong_clocks();
    let again = three.servers.iter().map(|it| it.out.clone()?.again);
    let minute = Some(Duration::from_secs(61));
    assert_eq!(again.collect::<Vec<_>>(), [None, None, minute]);
    let findings = of_server(&three, 1);
    let found = &finding(&findings, "vote", Red).found;
    assert_eq!(found, "no vote: restarted");
    assert!(remedy(&of_first(&three), "restart", Yellow).contains("fix the other servers"));
    // The other one is enough for a majority.
    let store = of_store(&three);
    assert_eq!(remedy(&store, "quorum", Red), "wait 1m 1s");
    // The rules of clocks do not apply to only two servers.
    let mut two = snapshot(2);
    two.servers[1].found.as_mut().unwrap().clock_offset = Some(5_000_000);
    put_out(&mut two, 1, Some(61));
    two.expect_nothing_of_wrong_clocks();
    assert_eq!(two.servers[1].out.as_ref().unwrap().again, minute);
}

#[test]
fn server_without_vote_says_why_and_how_long() {
    let mut three = snapshot(3);
    put_out(&mut three, 0, Some(30));
    let findings = of_first(&three);
    let text = &finding(&findings, "vote", Yellow).found;
    assert_eq!(text, "no vote for 30s: restarted");
    put_out(&mut three, 0, None);
    finding(&of_first(&three), "vote", Yellow);
    let found = three.servers[0].found.as_mut().unwrap();
    found.server.as_mut().unwrap().is_primary = false;
    finding(&of_first(&three), "vote", Red);
}

#[test]
fn damaged_record_is_red_even_in_a_minority() {
    let mut three = snapshot(3);
    let text = "its member record is damaged: DEL leasehold:member_record";
    let found = three.servers[0].found.as_mut().unwrap();
    found.status = Err(Error::new(ErrorKind::Corrupt, text));
    three.servers[0].out = Some(NoVote {
        why: text.into(),
        again: None,
    });
    let findings = of_first(&three);
    let text = &finding(&findings, "vote", Red).found;
    assert!(text.contains("its member record is damaged"), "{text}");
}

#[test]
fn unreadable_record_is_not_a_missing_one() {
    let mut three = snapshot(3);
    for server in &mut three.servers {
        let found = server.found.as_mut().unwrap();
        found.status.as_mut().unwrap().member_record = None;
    }
    let examined = |snapshot: &Snapshot| -> Vec<_> {
        let servers = snapshot.servers.iter();
        servers.map(|server| server.found.clone()).collect()
    };
    assert!(is_uninitialized(&examined(&three)));
    let found = three.servers[0].found.as_mut().unwrap();
    found.missing_rights.push(MissingRight {
        rule: "+hgetall".into(),
        need: Need::Sets,
    });
    assert!(!is_uninitialized(&examined(&three)));
    let findings = of_first(&three);
    finding(&findings, "rights", Red);
    assert!(
        findings.iter().all(|it| it.check != "record"),
        "{findings:?}"
    );
    finding(&of_server(&three, 1), "record", Yellow);
}

#[test]
fn restart_of_one_in_five_keeps_the_majority() {
    let mut five = snapshot(5);
    let why = |snapshot: &Snapshot, place| {
        let findings = of_server(snapshot, place);
        let restart = finding(&findings, "restart", Yellow);
        restart.advice.as_ref().unwrap().why.clone()
    };
    put_out(&mut five, 1, Some(30));
    let text = "b has no vote: after a restart, no further server may fail";
    assert_eq!(why(&five, 0), text);
    put_out(&mut five, 2, Some(30));
    let text = "b, c have no vote: without this server there is no majority";
    assert_eq!(why(&five, 0), text);
    // The restart of a server without a vote loses no vote.
    let text = "b has no vote: after a restart, no further server may fail";
    assert_eq!(why(&five, 2), text);
}

#[test]
fn a_restart_waits_for_the_others() {
    let mut three = snapshot(3);
    put_out(&mut three, 1, Some(30));
    let waits = remedy(&of_first(&three), "restart", Yellow);
    assert_eq!(waits, "wait 30s before a restart");
    finding(&of_server(&three, 1), "restart", Green);
    put_out(&mut three, 2, Some(45));
    let waits = remedy(&of_first(&three), "restart", Yellow);
    assert_eq!(waits, "wait 45s before a restart");
    put_out(&mut three, 2, None);
    assert!(remedy(&of_first(&three), "restart", Yellow).contains("fix the other servers"));
    let mut forgetful = snapshot(3);
    let found = forgetful.servers[0].found.as_mut().unwrap();
    found.status.as_mut().unwrap().durable = false;
    let findings = of_first(&forgetful);
    let cost = &finding(&findings, "restart", Green).found;
    assert!(cost.ends_with("has no vote for 1m 1s"), "{cost}");
    let mut alone = snapshot(1);
    finding(&of_first(&alone), "restart", Green);
    let found = alone.servers[0].found.as_mut().unwrap();
    found.status.as_mut().unwrap().durable = false;
    finding(&of_first(&alone), "restart", Yellow);
}
