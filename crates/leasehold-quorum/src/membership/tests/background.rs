//! When members are asked in the background.

use super::*;

fn asked(client: &mut Membership) -> Vec<usize> {
    let mut asked = Vec::new();
    while let Some((member, request)) = client.poll_request() {
        assert!(matches!(request, Request::Status), "{request:?}");
        asked.push(member.into());
    }
    asked
}

#[test]
fn status_is_asked_with_each_connection() {
    let (quorum, mut client) = TestQuorum::new(3);
    client.disconnected(quorum.ours(), 1.into(), unreachable("connection reset"));
    assert!(events(&mut client).is_empty(), "it may have been idle");
    assert_eq!(
        client.access(quorum.ours(), 1.into(), quorum.ours()),
        Access::Closed
    );
    assert_eq!(quorum.obstacle(&client, 1), "m1: connection reset");
    assert!(asked(&mut client).is_empty());
    client.connected(quorum.ours(), 1.into());
    assert_eq!(
        client.access(quorum.ours(), 1.into(), quorum.ours()),
        Access::Open
    );
    assert_eq!(asked(&mut client), [1]);
}

#[test]
fn failed_connection_is_reported_once() {
    let (quorum, mut client) = TestQuorum::new(3);
    for _ in 0..3 {
        client.disconnected(quorum.ours(), 1.into(), unreachable("connection refused"));
    }
    assert_eq!(events(&mut client), ["m1 fails: m1: connection refused"]);
    client.connected(quorum.ours(), 1.into());
    client.disconnected(quorum.ours(), 1.into(), unreachable("connection reset"));
    assert!(client.poll_request().is_none(), "nothing for a closed one");
}

#[test]
fn silent_member_is_closed_until_its_status() {
    let (mut quorum, mut client) = TestQuorum::new(3);
    let now = quorum.ours();
    client.silent(now, 1.into(), now, &unreachable("no answer within 50ms"));
    client.disconnected(now, 1.into(), unreachable("connection reset"));
    client.connected(now, 1.into());
    assert_eq!(client.access(now, 1.into(), now), Access::Closed);
    quorum.settle(&mut client);
    assert_eq!(quorum.access(&mut client, 1), Access::Open);
}

#[test]
fn unknown_member_is_pending_until_it_answers() {
    let mut quorum = TestQuorum::bare(3);
    let mut client = Membership::new(set(3), true, false, Arc::new(RandomEntropy));
    let access = |client: &mut Membership, quorum: &TestQuorum| {
        client.access(quorum.ours(), 0.into(), quorum.ours())
    };
    assert_eq!(access(&mut client, &quorum), Access::Pending);
    for member in 0..3 {
        client.connected(quorum.ours(), member.into());
    }
    assert_eq!(access(&mut client, &quorum), Access::Pending);
    client.take_changed(quorum.ours());
    quorum.settle(&mut client);
    assert!(client.take_changed(quorum.ours()));
    assert_eq!(access(&mut client, &quorum), Access::Open);
}

#[test]
fn read_only_client_writes_no_records() {
    let mut quorum = TestQuorum::bare(3);
    let mut client = Membership::new(set(3), true, true, Arc::new(RandomEntropy));
    (0..3).for_each(|member| client.connected(quorum.ours(), member.into()));
    quorum.settle(&mut client);
    assert!(
        quorum
            .servers
            .iter()
            .all(|server| server.member_record.is_none())
    );
}

#[test]
fn member_is_looked_at_again_after_a_minute() {
    let (mut quorum, mut client) = TestQuorum::new(3);
    let sample = |quorum: &TestQuorum, client: &mut Membership| {
        client.sample(quorum.ours(), 1.into(), quorum.ours(), &quorum.sample(1));
    };
    quorum.pass(&mut client, 59 * SECOND);
    sample(&quorum, &mut client);
    assert!(asked(&mut client).is_empty());
    quorum.pass(&mut client, 2 * SECOND);
    sample(&quorum, &mut client);
    sample(&quorum, &mut client);
    assert_eq!(asked(&mut client), [1], "one request at a time");
}

#[test]
fn refused_status_is_asked_again_after_a_pause() {
    let (mut quorum, _) = TestQuorum::new(3);
    quorum.servers[1].refuses = true;
    let mut client = quorum.client(set(3), true);
    let text = "m1: no permission to run INFO";
    for _ in 0..10 {
        assert_eq!(quorum.access(&mut client, 1), Access::Closed);
        assert_eq!(quorum.obstacle(&client, 1), text);
        client.handle_timeout(quorum.ours());
        client.sample(quorum.ours(), 1.into(), quorum.ours(), &quorum.sample(1));
        assert!(asked(&mut client).is_empty());
    }
    assert_eq!(quorum.votes(&mut client), [true, false, true]);
    quorum.servers[1].refuses = false;
    quorum.pass(&mut client, SECOND);
    assert_eq!(quorum.access(&mut client, 1), Access::Open);
    assert!(client.next_timeout().is_none());
}

#[test]
fn single_server_need_not_report_its_status() {
    let mut quorum = TestQuorum::bare(1);
    quorum.servers[0].refuses = true;
    let mut client = quorum.client(set(1), false);
    assert_eq!(quorum.access(&mut client, 0), Access::Open);
    assert_eq!(quorum.vote(&mut client, 0), Ok(()));
}

#[test]
fn silent_member_stays_so_until_a_prompt_reply() {
    let (mut quorum, mut client) = TestQuorum::new(3);
    quorum.servers[1].mute = true;
    let sent = quorum.ours();
    quorum.now += Duration::from_millis(50);
    let error = unreachable("no answer within 50ms");
    client.silent(quorum.ours(), 1.into(), sent, &error);
    assert_eq!(events(&mut client), ["m1 fails: no answer within 50ms"]);
    quorum.settle(&mut client);
    assert_eq!(quorum.access(&mut client, 1), Access::Closed);
    quorum.pass(&mut client, 3 * SECOND);
    assert_eq!(
        quorum.obstacle(&client, 1),
        "m1: has not answered for 3s 100ms"
    );
    quorum.servers[1].mute = false;
    // The answer to the old request arrives late.
    let late = Reply::Status(Box::new(quorum.status(1)));
    client.handle_reply(quorum.ours(), 1.into(), late);
    assert_eq!(client.access(quorum.ours(), 1.into(), sent), Access::Closed);
    quorum.settle(&mut client);
    assert_eq!(quorum.access(&mut client, 1), Access::Open);
    assert_eq!(events(&mut client), ["m1 answers"]);
}

#[test]
fn lost_status_counts_as_no_answer() {
    let (mut quorum, _) = TestQuorum::new(3);
    quorum.servers[1].mute = true;
    let mut client = quorum.client(set(3), true);
    assert_eq!(
        client.access(quorum.ours(), 1.into(), quorum.ours()),
        Access::Pending
    );
    client.take_changed(quorum.ours());
    quorum.pass(&mut client, SECOND);
    assert!(client.take_changed(quorum.ours()));
    assert_eq!(
        client.access(quorum.ours(), 1.into(), quorum.ours()),
        Access::Closed
    );
    assert_eq!(quorum.votes(&mut client), [true, false, true]);
    assert_eq!(events(&mut client)[0], "m1 fails: m1: no answer within 1s");
}

#[test]
fn record_write_that_was_lost_is_repeated() {
    let (mut quorum, mut client) = TestQuorum::new(3);
    quorum.restart(1, false);
    client.disconnected(quorum.ours(), 1.into(), unreachable("connection reset"));
    client.connected(quorum.ours(), 1.into());
    let (_, status) = client.poll_request().unwrap();
    let reply = quorum.reply(1, status);
    client.handle_reply(quorum.ours(), 1.into(), reply);
    let (member, write) = client.poll_request().unwrap();
    assert!(matches!(write, Request::WriteMemberRecord(_)), "{write:?}");
    client.disconnected(quorum.ours(), member, unreachable("connection reset"));
    client.connected(quorum.ours(), 1.into());
    quorum.settle(&mut client);
    assert!(quorum.servers[1].member_record.is_some());
    assert!(matches!(
        quorum.vote(&mut client, 1),
        Err(UntrustedReason::Forgot { .. })
    ));
}

#[test]
fn failed_record_write_is_not_repeated_at_once() {
    let (mut quorum, mut client) = TestQuorum::new(3);
    quorum.restart(1, false);
    client.connected(quorum.ours(), 1.into());
    let failing = |quorum: &mut TestQuorum, client: &mut Membership| {
        let mut writes = 0;
        while let Some((member, request)) = client.poll_request() {
            let reply = match request {
                Request::WriteMemberRecord(_) => {
                    writes += 1;
                    Reply::Failed(Error::new(ErrorKind::Refused, "OOM"))
                }
                other => quorum.reply(member.into(), other),
            };
            client.handle_reply(quorum.ours(), member, reply);
        }
        writes
    };
    assert_eq!(failing(&mut quorum, &mut client), 1);
    client.sample(quorum.ours(), 1.into(), quorum.ours(), &quorum.sample(1));
    assert_eq!(failing(&mut quorum, &mut client), 0);
    quorum.now += SECOND;
    client.handle_timeout(quorum.ours());
    assert_eq!(failing(&mut quorum, &mut client), 1);
}

#[test]
fn ticket_is_the_lower_median_of_the_clocks() {
    let (mut quorum, mut client) = TestQuorum::new(3);
    quorum.servers[2].ahead = Duration::from_millis(100);
    quorum.reconnect(&mut client, 2);
    let owner = leasehold_types::Owner::random(
        leasehold_types::ClientId::random(&RandomEntropy),
        &RandomEntropy,
    );
    let true_time = quorum.now.as_micros() as u64;
    let ticket = client.ticket(quorum.ours(), owner).unwrap();
    assert!(ticket.since.as_micros().abs_diff(true_time) < 1000);
    let next = client.ticket(quorum.ours(), owner).unwrap();
    assert!(next.since > ticket.since);
    quorum.pass(&mut client, 9 * SECOND);
    client.sample(quorum.ours(), 0.into(), quorum.ours(), &quorum.sample(0));
    quorum.pass(&mut client, 9 * SECOND);
    assert!(client.ticket(quorum.ours(), owner).is_some());
    quorum.pass(&mut client, 2 * SECOND);
    assert!(client.ticket(quorum.ours(), owner).is_none());
    assert_eq!(asked(&mut client), [0, 1, 2]);
}

/// A server without memory refuses attempts, and answers releases.
#[test]
fn refusal_ends_with_an_answered_attempt() {
    let (_, mut client) = TestQuorum::new(3);
    for _ in 0..3 {
        client.refused(1.into(), &unreachable("not ready: OOM"));
        client.answered(1.into(), false);
    }
    assert_eq!(events(&mut client).len(), 1);
    client.answered(1.into(), true);
    assert_eq!(events(&mut client).len(), 1);
}
