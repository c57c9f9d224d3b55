//! Whose answers count.

use super::*;

const ALL: [bool; 3] = [true; 3];

#[test]
fn first_client_initializes_the_quorum() {
    let mut world = World::bare(3);
    let mut first = world.client(set(3), true);
    for server in &world.servers {
        assert_eq!(server.member_record.as_ref().unwrap().generation, 1);
    }
    // The servers may be a quorum that lost everything.
    assert_eq!(world.votes(&mut first), [false; 3]);
    world.pass(&mut first, WAIT);
    assert_eq!(world.votes(&mut first), ALL);
    let mut second = world.client(set(3), true);
    assert_eq!(world.votes(&mut second), ALL);
}

#[test]
fn new_servers_have_a_vote_at_once() {
    let mut world = World::bare(3);
    for server in &mut world.servers {
        server.is_new = true;
    }
    let mut client = world.client(set(3), true);
    assert_eq!(world.votes(&mut client), ALL);
}

#[test]
fn quorum_is_initialized_when_the_last_member_answers() {
    let mut world = World::bare(3);
    let mut client = Membership::new(set(3), true, false, Arc::new(SystemEntropy));
    for member in [0, 1] {
        client.connected(world.ours(), member);
    }
    client.disconnected(world.ours(), 2, unreachable("connection refused"));
    world.settle(&mut client);
    assert_eq!(world.access(&mut client, 0), Access::Closed);
    assert_eq!(
        world.obstacle(&client, 0),
        "m0: the quorum is not initialized, because m2 did not answer"
    );
    assert!(world.servers[0].member_record.is_none());
    client.take_changed();
    client.connected(world.ours(), 2);
    world.settle(&mut client);
    assert!(client.take_changed());
    assert_eq!(world.access(&mut client, 0), Access::Open);
}

#[test]
fn restarted_member_has_no_vote_until_the_wait_is_over() {
    for keeps_data in [false, true] {
        let (mut world, mut client) = World::new(3);
        assert_eq!(world.votes(&mut client), ALL);
        assert!(events(&mut client).is_empty());
        world.restart(1, keeps_data);
        let grant = world.vote(&mut client, 1);
        assert_eq!(
            grant,
            Err(UntrustedReason::Changed),
            "noticed by the answer"
        );
        assert_eq!(world.votes(&mut client), [true, false, true]);
        let reason = "it restarted, lost data, or is new";
        let untrusted = world.vote(&mut client, 1).unwrap_err();
        let failure = client.failure(world.ours(), 1, &untrusted);
        assert_eq!(
            failure.to_string(),
            format!("m1: {reason} (no vote for 61s)")
        );
        assert!(failure.counts_again.unwrap() > WAIT - SECOND);
        world.pass(&mut client, WAIT - SECOND);
        assert_eq!(world.votes(&mut client), [true, false, true]);
        world.pass(&mut client, SECOND);
        assert_eq!(world.votes(&mut client), ALL);
        let events = events(&mut client);
        let last = events.iter().rev().take(2).rev();
        let expected = [format!("m1 no vote: {reason}"), "m1 has a vote".into()];
        assert!(last.eq(&expected), "{events:?}");
    }
}

#[test]
fn request_from_before_the_wait_is_over_does_not_count() {
    let (mut world, mut client) = World::new(3);
    world.restart(1, false);
    world.reconnect(&mut client, 1);
    world.pass(&mut client, WAIT - SECOND);
    let sent = world.ours();
    world.pass(&mut client, 2 * SECOND);
    assert!(client.counts(1, sent, None).is_err());
    assert!(client.counts(1, world.ours(), None).is_ok());
}

#[test]
fn durable_member_keeps_its_vote_across_a_restart() {
    let (mut world, mut client) = World::new(3);
    world.servers[1].durable = true;
    // The promise starts with the next restart, which begins a new data generation.
    world.restart(1, true);
    world.reconnect(&mut client, 1);
    world.pass(&mut client, WAIT);
    assert_eq!(world.votes(&mut client), ALL);
    world.restart(1, true);
    world.reconnect(&mut client, 1);
    assert_eq!(world.votes(&mut client), ALL);
    assert!(client.is_durable(1) && !client.is_durable(0));
}

#[test]
fn durability_switched_off_is_noticed_within_a_minute() {
    let (mut world, mut client) = World::new(3);
    world.servers[1].durable = true;
    world.restart(1, true);
    world.reconnect(&mut client, 1);
    world.pass(&mut client, WAIT);
    world.votes(&mut client);
    assert!(world.servers[1].member_record.as_ref().unwrap().durable);
    world.servers[1].durable = false;
    world.pass(&mut client, WAIT);
    assert_eq!(world.votes(&mut client), ALL, "it forgot nothing");
    assert!(!world.servers[1].member_record.as_ref().unwrap().durable);
}

#[test]
fn rolled_back_member_has_no_vote() {
    let (mut world, mut client) = World::new(3);
    world.servers[1].durable = true;
    world.restart(1, true);
    world.reconnect(&mut client, 1);
    world.pass(&mut client, WAIT);
    assert_eq!(world.votes(&mut client), ALL);
    let copy = world.servers[1].member_record.clone();
    world.servers[1].durable = false;
    let mut other = world.client(set(3), true);
    world.servers[1].durable = true;
    world.restart(1, true);
    world.servers[1].member_record = copy;
    world.reconnect(&mut other, 1);
    assert_eq!(world.votes(&mut other), [true, false, true]);
    let mut third = world.client(set(3), true);
    assert_eq!(world.votes(&mut third), [true, false, true]);
    world.pass(&mut other, WAIT);
    assert_eq!(world.votes(&mut other), ALL);
}

#[test]
fn running_client_hears_the_witnesses_of_a_restart() {
    let (mut world, mut client) = World::new(3);
    world.servers[1].durable = true;
    world.restart(1, true);
    world.reconnect(&mut client, 1);
    world.pass(&mut client, WAIT);
    assert_eq!(world.votes(&mut client), ALL);
    let copy = world.servers[1].member_record.clone();
    // Only another client notices that the member is no longer durable.
    world.servers[1].durable = false;
    world.client(set(3), true);
    world.servers[1].durable = true;
    world.restart(1, true);
    world.servers[1].member_record = copy;
    client.disconnected(world.ours(), 1, unreachable("connection reset"));
    client.connected(world.ours(), 1);
    let (_, status) = client.poll_request().unwrap();
    let reply = world.reply(1, status);
    client.handle_reply(world.ours(), 1, reply);
    let verdict = client.counts(1, world.ours(), None);
    assert_eq!(
        verdict,
        Err(UntrustedReason::Changed),
        "no peer was heard yet"
    );
    assert_eq!(client.counts(0, world.ours(), None), Ok(()));
    world.settle(&mut client);
    assert_eq!(world.votes(&mut client), [true, false, true]);
}

#[test]
fn silent_witness_does_not_hold_up_a_restarted_member() {
    for refuses in [false, true] {
        let (mut world, mut client) = World::new(3);
        world.servers[1].durable = true;
        world.restart(1, true);
        world.reconnect(&mut client, 1);
        world.pass(&mut client, WAIT);
        assert_eq!(world.votes(&mut client), ALL);
        world.restart(1, true);
        (world.servers[2].mute, world.servers[2].refuses) = (!refuses, refuses);
        world.reconnect(&mut client, 1);
        let at_once = world.vote(&mut client, 1);
        assert_eq!(at_once.is_ok(), refuses);
        world.pass(&mut client, SECOND);
        assert_eq!(world.vote(&mut client, 1), Ok(()));
    }
}

#[test]
fn vote_of_an_unknown_member_is_no_news() {
    let mut client = Membership::new(set(3), true, false, Arc::new(SystemEntropy));
    let now = World::bare(3).ours();
    assert_eq!(client.counts(0, now, None), Err(UntrustedReason::Unknown));
    assert!(events(&mut client).is_empty());
}

#[test]
fn empty_member_waits_until_a_silent_one_answers() {
    let (mut world, mut client) = World::new(3);
    world.pass(&mut client, 11 * SECOND);
    world.restart(1, false);
    world.servers[2].mute = true;
    let mut cold = Membership::new(set(3), true, false, Arc::new(SystemEntropy));
    for member in 0..3 {
        cold.connected(world.ours(), member);
    }
    client.disconnected(world.ours(), 2, unreachable("connection reset"));
    world.reconnect(&mut client, 1);
    for client in [&mut client, &mut cold] {
        world.settle(client);
        world.pass(client, 11 * SECOND);
        let reason = world.vote(client, 1).unwrap_err();
        assert_eq!(
            reason.to_string(),
            "lost its data, and with it the record of this quorum: it gets a new one when m2 \
             answers, or by `leasehold members readmit m1`"
        );
    }
    world.servers[2].mute = false;
    for client in [&mut client, &mut cold] {
        world.reconnect(client, 2);
        assert!(matches!(
            world.vote(client, 1),
            Err(UntrustedReason::Forgot { .. })
        ));
    }
    world.pass(&mut cold, WAIT);
    assert_eq!(world.votes(&mut cold), ALL);
}

#[test]
fn client_of_another_quorum_is_refused() {
    let (mut world, _) = World::new(5);
    let mut fewer = world.client(set(3), true);
    assert_eq!(world.access(&mut fewer, 0), Access::Closed);
    let obstacle = fewer.obstacle(world.ours(), 0).unwrap();
    assert_eq!(obstacle.error.kind(), ErrorKind::InvalidInput);
    assert_eq!(
        obstacle.to_string(),
        "m0: belongs to another quorum (generation 1): it has m0,m1,m2,m3,m4, this client m0,m1,m2"
    );
    // One of its members alone is not enough to lock, either.
    let mut alone = world.client(set(1), false);
    assert_eq!(world.access(&mut alone, 0), Access::Closed);
    for server in &mut world.servers {
        server.member_record = None;
    }
    world.now += Duration::from_millis(1);
    assert_eq!(world.access(&mut alone, 0), Access::Open, "looked again");
    for member in 0..3 {
        world.access(&mut fewer, member);
    }
    assert_eq!(world.access(&mut fewer, 0), Access::Open);
}

#[test]
fn restart_is_only_reported_without_enforcement() {
    let mut world = World::bare(2);
    let mut client = world.client(set(2), false);
    for member in [0, 1] {
        assert_eq!(world.vote(&mut client, member), Ok(()));
    }
    world.restart(1, false);
    assert_eq!(world.vote(&mut client, 1), Ok(()));
    assert_eq!(events(&mut client), ["m1 restarted"]);
    assert!(
        world.servers[0].member_record.is_none(),
        "no records are written"
    );
}

#[test]
fn stepped_clock_costs_one_member_its_vote() {
    let (mut world, mut client) = World::new(3);
    world.votes(&mut client);
    world.servers[2].ahead = 5 * SECOND;
    assert_eq!(world.votes(&mut client), [true, true, false]);
    let told = events(&mut client);
    assert_eq!(told, ["m2 no vote: its clock was stepped 5.0s ahead"]);
}

#[test]
fn suspended_client_learns_it_from_the_members() {
    let (mut world, mut client) = World::new(3);
    world.votes(&mut client);
    world.now += 20 * SECOND;
    world.behind = 20 * SECOND;
    world.vote(&mut client, 0).unwrap_err();
    world.vote(&mut client, 1).unwrap();
    assert_eq!(events(&mut client).last().unwrap(), "suspended for 20s");
    // The driver tells its clock.
    world.behind = Duration::ZERO;
    assert_eq!(
        world.votes(&mut client),
        ALL,
        "the members keep their votes"
    );
}

#[test]
fn member_that_joined_lately_cannot_deny_a_record() {
    let (mut world, mut client) = World::new(3);
    world.restart(1, false);
    world.reconnect(&mut client, 1);
    world.pass(&mut client, 2 * WAIT);
    assert_eq!(world.votes(&mut client), ALL);
    let retention = 3600 * SECOND;
    let sent = world.ours();
    assert!(matches!(
        client.remembers(1, sent, retention),
        Err(UntrustedReason::Young { .. })
    ));
    world.pass(&mut client, retention + 2 * WAIT);
    assert!(client.remembers(1, world.ours(), retention).is_ok());
}
