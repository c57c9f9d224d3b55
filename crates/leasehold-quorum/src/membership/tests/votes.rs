//! Whose answers count.

use super::*;

const ALL: [bool; 3] = [true; 3];

/// A quorum in which m1 is durable, and a client that knows it.
fn with_durable_member() -> (TestQuorum, Membership) {
    let (mut quorum, mut client) = TestQuorum::new(3);
    quorum.servers[1].durable = true;
    // The promise starts with the next restart, which begins a new data generation.
    quorum.restart(1, true);
    quorum.reconnect(&mut client, 1);
    quorum.pass(&mut client, WAIT);
    assert_eq!(quorum.votes(&mut client), ALL);
    (quorum, client)
}

#[test]
fn first_client_initializes_the_quorum() {
    let mut quorum = TestQuorum::bare(3);
    let mut first = quorum.client(set(3), true);
    for server in &quorum.servers {
        assert_eq!(server.member_record.as_ref().unwrap().generation, 1);
    }
    // The servers may be a quorum that lost everything.
    assert_eq!(quorum.votes(&mut first), [false; 3]);
    quorum.pass(&mut first, WAIT);
    assert_eq!(quorum.votes(&mut first), ALL);
    let mut second = quorum.client(set(3), true);
    assert_eq!(quorum.votes(&mut second), ALL);
}

#[test]
fn new_servers_have_a_vote_at_once() {
    let mut quorum = TestQuorum::bare(3);
    for server in &mut quorum.servers {
        server.is_new = true;
    }
    let mut client = quorum.client(set(3), true);
    assert_eq!(quorum.votes(&mut client), ALL);
}

#[test]
fn quorum_is_initialized_when_the_last_member_answers() {
    let mut quorum = TestQuorum::bare(3);
    let mut client = Membership::new(set(3), true, false, Arc::new(RandomEntropy));
    for member in [0, 1] {
        client.connected(quorum.ours(), member.into());
    }
    client.disconnected(quorum.ours(), 2.into(), unreachable("connection refused"));
    quorum.settle(&mut client);
    assert_eq!(quorum.access(&mut client, 0), Access::Closed);
    assert_eq!(
        quorum.obstacle(&client, 0),
        "m0: the quorum is not initialized, because m2 did not answer"
    );
    assert!(quorum.servers[0].member_record.is_none());
    client.take_changed(quorum.ours());
    client.connected(quorum.ours(), 2.into());
    quorum.settle(&mut client);
    assert!(client.take_changed(quorum.ours()));
    assert_eq!(quorum.access(&mut client, 0), Access::Open);
}

#[test]
fn restarted_member_has_no_vote_during_the_wait() {
    for keeps_data in [false, true] {
        let (mut quorum, mut client) = TestQuorum::new(3);
        assert_eq!(quorum.votes(&mut client), ALL);
        assert!(events(&mut client).is_empty());
        quorum.restart(1, keeps_data);
        let grant = quorum.vote(&mut client, 1);
        assert_eq!(
            grant,
            Err(UntrustedReason::Changed),
            "noticed by the answer"
        );
        assert_eq!(quorum.votes(&mut client), [true, false, true]);
        let reason = "it restarted, lost data, or is new";
        let untrusted = quorum.vote(&mut client, 1).unwrap_err();
        let failure = client.failure(quorum.ours(), 1.into(), &untrusted);
        assert_eq!(
            failure.to_string(),
            format!("m1: {reason} (no vote for 1m 1s)")
        );
        assert!(failure.eligible_after.unwrap() > WAIT - SECOND);
        quorum.pass(&mut client, WAIT - SECOND);
        assert_eq!(quorum.votes(&mut client), [true, false, true]);
        quorum.pass(&mut client, SECOND);
        assert_eq!(quorum.votes(&mut client), ALL);
        let events = events(&mut client);
        let last = events.iter().rev().take(2).rev();
        let expected = [format!("m1 no vote: {reason}"), "m1 has a vote".into()];
        assert!(last.eq(&expected), "{events:?}");
    }
}

#[test]
fn durable_member_keeps_its_vote_across_a_restart() {
    let (mut quorum, mut client) = with_durable_member();
    quorum.restart(1, true);
    quorum.reconnect(&mut client, 1);
    assert_eq!(quorum.votes(&mut client), ALL);
    assert!(client.is_durable(1.into()) && !client.is_durable(0.into()));
}

#[test]
fn durability_switched_off_is_noticed_within_a_minute() {
    let (mut quorum, mut client) = with_durable_member();
    assert!(quorum.servers[1].member_record.as_ref().unwrap().durable);
    quorum.servers[1].durable = false;
    quorum.pass(&mut client, WAIT);
    assert_eq!(quorum.votes(&mut client), ALL, "it forgot nothing");
    assert!(!quorum.servers[1].member_record.as_ref().unwrap().durable);
}

#[test]
fn running_client_hears_the_witnesses_of_a_restart() {
    let (mut quorum, mut client) = with_durable_member();
    let copy = quorum.servers[1].member_record.clone();
    // Only another client notices that the member is no longer durable.
    quorum.servers[1].durable = false;
    quorum.client(set(3), true);
    quorum.servers[1].durable = true;
    quorum.restart(1, true);
    quorum.servers[1].member_record = copy;
    client.disconnected(quorum.ours(), 1.into(), unreachable("connection reset"));
    client.connected(quorum.ours(), 1.into());
    let (_, status) = client.poll_request().unwrap();
    let reply = quorum.reply(1, status);
    client.handle_reply(quorum.ours(), 1.into(), reply);
    let verdict = client.counts(1.into(), quorum.ours(), None);
    assert_eq!(
        verdict,
        Err(UntrustedReason::Changed),
        "no peer was heard yet"
    );
    assert_eq!(client.counts(0.into(), quorum.ours(), None), Ok(()));
    quorum.settle(&mut client);
    assert_eq!(quorum.votes(&mut client), [true, false, true]);
}

#[test]
fn silent_peer_does_not_delay_a_restarted_member() {
    for refuses in [false, true] {
        let (mut quorum, mut client) = with_durable_member();
        quorum.restart(1, true);
        (quorum.servers[2].mute, quorum.servers[2].refuses) = (!refuses, refuses);
        quorum.reconnect(&mut client, 1);
        let at_once = quorum.vote(&mut client, 1);
        assert_eq!(at_once.is_ok(), refuses);
        quorum.pass(&mut client, SECOND);
        assert_eq!(quorum.vote(&mut client, 1), Ok(()));
    }
}

#[test]
fn vote_of_an_unknown_member_is_no_news() {
    let mut client = Membership::new(set(3), true, false, Arc::new(RandomEntropy));
    let now = TestQuorum::bare(3).ours();
    assert_eq!(
        client.counts(0.into(), now, None),
        Err(UntrustedReason::Unknown)
    );
    assert!(events(&mut client).is_empty());
}

#[test]
fn empty_member_waits_until_a_silent_one_answers() {
    let (mut quorum, mut client) = TestQuorum::new(3);
    quorum.pass(&mut client, 11 * SECOND);
    quorum.restart(1, false);
    quorum.servers[2].mute = true;
    let mut cold = Membership::new(set(3), true, false, Arc::new(RandomEntropy));
    for member in 0..3 {
        cold.connected(quorum.ours(), member.into());
    }
    client.disconnected(quorum.ours(), 2.into(), unreachable("connection reset"));
    quorum.reconnect(&mut client, 1);
    for client in [&mut client, &mut cold] {
        quorum.settle(client);
        quorum.pass(client, 11 * SECOND);
        let reason = quorum.vote(client, 1).unwrap_err();
        assert_eq!(
            reason.to_string(),
            "has no record of this quorum: it lost its data, or never was a member; it gets a \
             record when m2 answers, or by `leasehold members readmit m1`"
        );
    }
    quorum.servers[2].mute = false;
    for client in [&mut client, &mut cold] {
        quorum.reconnect(client, 2);
        assert!(matches!(
            quorum.vote(client, 1),
            Err(UntrustedReason::Forgot { .. })
        ));
    }
    quorum.pass(&mut cold, WAIT);
    assert_eq!(quorum.votes(&mut cold), ALL);
}

#[test]
fn client_of_another_quorum_is_refused() {
    let (mut quorum, _) = TestQuorum::new(5);
    let mut fewer = quorum.client(set(3), true);
    assert_eq!(quorum.access(&mut fewer, 0), Access::Closed);
    let obstacle = fewer.obstacle(quorum.ours(), 0.into()).unwrap();
    assert_eq!(obstacle.error.kind(), ErrorKind::Misconfigured);
    assert_eq!(
        obstacle.to_string(),
        "m0: belongs to another quorum (generation 1): it has m0,m1,m2,m3,m4, this client m0,m1,m2"
    );
    // One of its members alone is not enough to lock, either.
    let mut alone = quorum.client(set(1), false);
    assert_eq!(quorum.access(&mut alone, 0), Access::Closed);
    for server in &mut quorum.servers {
        server.member_record = None;
    }
    quorum.now += Duration::from_millis(1);
    assert_eq!(quorum.access(&mut alone, 0), Access::Open, "looked again");
    for member in 0..3 {
        quorum.access(&mut fewer, member);
    }
    assert_eq!(quorum.access(&mut fewer, 0), Access::Open);
}

#[test]
fn restart_is_only_reported_without_enforcement() {
    let mut quorum = TestQuorum::bare(2);
    let mut client = quorum.client(set(2), false);
    for member in [0, 1] {
        assert_eq!(quorum.vote(&mut client, member), Ok(()));
    }
    quorum.restart(1, false);
    assert_eq!(quorum.vote(&mut client, 1), Ok(()));
    assert_eq!(events(&mut client), ["m1 restarted"]);
    assert!(
        quorum.servers[0].member_record.is_none(),
        "no records are written"
    );
}

#[test]
fn stepped_clock_costs_one_member_its_vote() {
    let (mut quorum, mut client) = TestQuorum::new(3);
    quorum.votes(&mut client);
    quorum.servers[2].ahead = 5 * SECOND;
    assert_eq!(quorum.votes(&mut client), [true, true, false]);
    let told = events(&mut client);
    assert_eq!(told, ["m2 no vote: its clock was stepped 5s ahead"]);
}

#[test]
fn suspended_client_learns_it_from_the_members() {
    let (mut quorum, mut client) = TestQuorum::new(3);
    quorum.votes(&mut client);
    quorum.now += 20 * SECOND;
    quorum.behind = 20 * SECOND;
    quorum.vote(&mut client, 0).unwrap_err();
    quorum.vote(&mut client, 1).unwrap();
    assert_eq!(events(&mut client).last().unwrap(), "suspended for 20s");
    // The driver tells its clock.
    quorum.behind = Duration::ZERO;
    assert_eq!(
        quorum.votes(&mut client),
        ALL,
        "the members keep their votes"
    );
}
