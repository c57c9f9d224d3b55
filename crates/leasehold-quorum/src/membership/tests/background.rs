//! When members are asked in the background.

use super::*;

fn asked(client: &mut Membership) -> Vec<usize> {
    let mut asked = Vec::new();
    while let Some((member, request)) = client.poll_request() {
        assert!(matches!(request, Request::Status), "{request:?}");
        asked.push(member);
    }
    asked
}

#[test]
fn status_is_asked_with_each_connection() {
    let (world, mut client) = World::new(3);
    client.disconnected(world.ours(), 1, unreachable("connection reset"));
    assert!(events(&mut client).is_empty(), "it may have been idle");
    assert_eq!(client.access(world.ours(), 1, world.ours()), Access::Closed);
    assert_eq!(world.obstacle(&client, 1), "m1: connection reset");
    assert!(asked(&mut client).is_empty());
    client.connected(world.ours(), 1);
    assert_eq!(client.access(world.ours(), 1, world.ours()), Access::Open);
    assert_eq!(asked(&mut client), [1]);
}

#[test]
fn failed_connection_is_reported_once() {
    let (world, mut client) = World::new(3);
    for _ in 0..3 {
        client.disconnected(world.ours(), 1, unreachable("connection refused"));
    }
    assert_eq!(events(&mut client), ["m1 fails: m1: connection refused"]);
    client.connected(world.ours(), 1);
    client.disconnected(world.ours(), 1, unreachable("connection reset"));
    assert!(client.poll_request().is_none(), "nothing for a closed one");
}

#[test]
fn silent_member_is_closed_until_it_reports_its_status() {
    let (mut world, mut client) = World::new(3);
    let now = world.ours();
    client.silent(now, 1, now, &unreachable("no answer within 50ms"));
    client.disconnected(now, 1, unreachable("connection reset"));
    client.connected(now, 1);
    assert_eq!(client.access(now, 1, now), Access::Closed);
    world.settle(&mut client);
    assert_eq!(world.access(&mut client, 1), Access::Open);
}

#[test]
fn unknown_member_is_pending_until_it_answers() {
    let mut world = World::bare(3);
    let mut client = Membership::new(set(3), true, false, Arc::new(SystemEntropy));
    let access =
        |client: &mut Membership, world: &World| client.access(world.ours(), 0, world.ours());
    assert_eq!(access(&mut client, &world), Access::Pending);
    for member in 0..3 {
        client.connected(world.ours(), member);
    }
    assert_eq!(access(&mut client, &world), Access::Pending);
    client.take_changed();
    world.settle(&mut client);
    assert!(client.take_changed());
    assert_eq!(access(&mut client, &world), Access::Open);
}

#[test]
fn read_only_client_writes_no_records() {
    let mut world = World::bare(3);
    let mut client = Membership::new(set(3), true, true, Arc::new(SystemEntropy));
    (0..3).for_each(|member| client.connected(world.ours(), member));
    world.settle(&mut client);
    assert!(
        world
            .servers
            .iter()
            .all(|server| server.member_record.is_none())
    );
}

#[test]
fn member_is_looked_at_again_after_a_minute() {
    let (mut world, mut client) = World::new(3);
    let sample = |world: &World, client: &mut Membership| {
        client.sample(world.ours(), 1, world.ours(), &world.sample(1));
    };
    world.pass(&mut client, 59 * SECOND);
    sample(&world, &mut client);
    assert!(asked(&mut client).is_empty());
    world.pass(&mut client, 2 * SECOND);
    sample(&world, &mut client);
    sample(&world, &mut client);
    assert_eq!(asked(&mut client), [1], "one request at a time");
}

#[test]
fn refused_status_is_asked_again_after_a_pause() {
    let (mut world, _) = World::new(3);
    world.servers[1].refuses = true;
    let mut client = world.client(set(3), true);
    let text = "m1: no permission to run INFO";
    for _ in 0..10 {
        assert_eq!(world.access(&mut client, 1), Access::Closed);
        assert_eq!(world.obstacle(&client, 1), text);
        client.handle_timeout(world.ours());
        client.sample(world.ours(), 1, world.ours(), &world.sample(1));
        assert!(asked(&mut client).is_empty());
    }
    assert_eq!(world.votes(&mut client), [true, false, true]);
    world.servers[1].refuses = false;
    world.pass(&mut client, SECOND);
    assert_eq!(world.access(&mut client, 1), Access::Open);
    assert!(client.next_timeout().is_none());
}

#[test]
fn single_server_need_not_report_its_status() {
    let mut world = World::bare(1);
    world.servers[0].refuses = true;
    let mut client = world.client(set(1), false);
    assert_eq!(world.access(&mut client, 0), Access::Open);
    assert_eq!(world.vote(&mut client, 0), Ok(()));
}

#[test]
fn member_without_an_answer_is_silent_until_a_prompt_one() {
    let (mut world, mut client) = World::new(3);
    world.servers[1].mute = true;
    let sent = world.ours();
    world.now += Duration::from_millis(50);
    let error = unreachable("no answer within 50ms");
    client.silent(world.ours(), 1, sent, &error);
    assert_eq!(events(&mut client), ["m1 fails: no answer within 50ms"]);
    world.settle(&mut client);
    assert_eq!(world.access(&mut client, 1), Access::Closed);
    world.pass(&mut client, 3 * SECOND);
    assert_eq!(world.obstacle(&client, 1), "m1: has not answered for 3.1s");
    world.servers[1].mute = false;
    // The answer to the old request arrives late.
    let late = Reply::Status(Box::new(world.status(1)));
    client.handle_reply(world.ours(), 1, late);
    assert_eq!(client.access(world.ours(), 1, sent), Access::Closed);
    world.settle(&mut client);
    assert_eq!(world.access(&mut client, 1), Access::Open);
    assert_eq!(events(&mut client), ["m1 answers"]);
}

#[test]
fn lost_status_counts_as_no_answer() {
    let (mut world, _) = World::new(3);
    world.servers[1].mute = true;
    let mut client = world.client(set(3), true);
    assert_eq!(
        client.access(world.ours(), 1, world.ours()),
        Access::Pending
    );
    client.take_changed();
    world.pass(&mut client, SECOND);
    assert!(client.take_changed());
    assert_eq!(client.access(world.ours(), 1, world.ours()), Access::Closed);
    assert_eq!(world.votes(&mut client), [true, false, true]);
    assert_eq!(events(&mut client)[0], "m1 fails: m1: no answer within 1s");
}

#[test]
fn record_write_that_was_lost_is_repeated() {
    let (mut world, mut client) = World::new(3);
    world.restart(1, false);
    client.disconnected(world.ours(), 1, unreachable("connection reset"));
    client.connected(world.ours(), 1);
    let (_, status) = client.poll_request().unwrap();
    let reply = world.reply(1, status);
    client.handle_reply(world.ours(), 1, reply);
    let (member, write) = client.poll_request().unwrap();
    assert!(matches!(write, Request::WriteMemberRecord(_)), "{write:?}");
    client.disconnected(world.ours(), member, unreachable("connection reset"));
    client.connected(world.ours(), 1);
    world.settle(&mut client);
    assert!(world.servers[1].member_record.is_some());
    assert!(matches!(
        world.vote(&mut client, 1),
        Err(UntrustedReason::Forgot { .. })
    ));
}

#[test]
fn failed_record_write_is_not_repeated_at_once() {
    let (mut world, mut client) = World::new(3);
    world.restart(1, false);
    client.connected(world.ours(), 1);
    let failing = |world: &mut World, client: &mut Membership| {
        let mut writes = 0;
        while let Some((member, request)) = client.poll_request() {
            let reply = match request {
                Request::WriteMemberRecord(_) => {
                    writes += 1;
                    Reply::Failed(Error::new(ErrorKind::Refused, "OOM"))
                }
                other => world.reply(member, other),
            };
            client.handle_reply(world.ours(), member, reply);
        }
        writes
    };
    assert_eq!(failing(&mut world, &mut client), 1);
    client.sample(world.ours(), 1, world.ours(), &world.sample(1));
    assert_eq!(failing(&mut world, &mut client), 0);
    world.now += SECOND;
    client.handle_timeout(world.ours());
    assert_eq!(failing(&mut world, &mut client), 1);
}

#[test]
fn ticket_is_the_lower_median_of_the_clocks() {
    let (mut world, mut client) = World::new(3);
    world.servers[2].ahead = Duration::from_millis(100);
    world.reconnect(&mut client, 2);
    let owner =
        leasehold::Owner::random(leasehold::ClientId::random(&SystemEntropy), &SystemEntropy);
    let true_time = world.now.as_micros() as u64;
    let ticket = client.ticket(world.ours(), owner).unwrap();
    assert!(ticket.since.as_micros().abs_diff(true_time) < 1000);
    let next = client.ticket(world.ours(), owner).unwrap();
    assert!(next.since > ticket.since);
    world.pass(&mut client, 9 * SECOND);
    client.sample(world.ours(), 0, world.ours(), &world.sample(0));
    world.pass(&mut client, 9 * SECOND);
    assert!(client.ticket(world.ours(), owner).is_some());
    world.pass(&mut client, 2 * SECOND);
    assert!(client.ticket(world.ours(), owner).is_none());
    assert_eq!(asked(&mut client), [0, 1, 2]);
}
