//! How often a request has to cross the network, and what crosses together.

use leasehold::{Fence, Member};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::RedisServer;

use crate::proxy::Turns;
use crate::support::{card_edit, claim, granted, held, released};

fn at(port: u16, login: &str, database: &str) -> RedisMember {
    RedisMember::new(format!("redis://{login}127.0.0.1:{port}{database}")).unwrap()
}

#[tokio::test]
async fn a_cold_acquire_takes_three_trips_with_or_without_a_look_before() {
    let open = RedisServer::start();
    let closed = RedisServer::builder()
        .password("secret")
        .acl("ann", "on >word ~* +@all")
        .start();
    for (server, login, database) in [
        (&open, "", ""),
        (&open, "", "/3"),
        (&closed, ":secret@", ""),
        (&closed, "ann:word@", "/3"),
    ] {
        for looks in [false, true] {
            let (turns, port) = Turns::through_proxy_to(server.port()).await;
            let store = at(port, login, database);
            if looks {
                store.presence().await.unwrap();
            }
            let mine = claim("deploy");
            granted(&store, &mine).await;
            let taken = turns.take();
            assert_eq!(taken.len(), 3, "{login}{database}: {taken:#?}");
            released(&store, &mine).await;
        }
    }
}

#[tokio::test]
async fn a_look_at_an_open_connection_asks_again_in_one_trip() {
    let server = RedisServer::start();
    let (turns, port) = Turns::through_proxy_to(server.port()).await;
    let store = at(port, "", "");
    let before = store.presence().await.unwrap();
    turns.take();
    let after = store.presence().await.unwrap();
    assert_eq!(turns.take().len(), 1);
    assert_eq!(after.run, before.run);
    assert!(after.clock > before.clock);
    let opened = at(port, "", "");
    granted(&opened, &claim("deploy")).await;
    turns.take();
    server.command(&["CONFIG", "SET", "maxmemory", "100mb"]);
    server.command(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    let unfit = opened.presence().await.unwrap().unfit;
    assert!(unfit.is_some(), "what was asked before the call is stale");
    assert_eq!(turns.take().len(), 1);
}

/// A mark that was read before the rest would be that of data which the rest may not have seen.
#[tokio::test]
async fn every_sampled_request_is_one_write_that_reads_the_mark_after_all_else() {
    let server = RedisServer::start();
    let (turns, port) = Turns::through_proxy_to(server.port()).await;
    let store = at(port, "", "");
    let edit = card_edit(&store.presence().await.unwrap(), "a");
    assert!(store.write_card(&edit).await.unwrap());
    let many: Vec<_> = (0..150)
        .map(|number| claim(&format!("lock {number}")))
        .collect();
    let mut leases = Vec::new();
    // Twice, since the server does not know the scripts at first.
    for known in [false, true] {
        for (number, mine) in many
            .iter()
            .chain([&crate::support::shared("doc")])
            .enumerate()
        {
            turns.take();
            leases.push(held(mine, &granted(&store, mine).await));
            let taken = turns.take();
            if known || number < 150 {
                assert_eq!(taken.len(), 1);
            }
            let drawn = if number < 150 { "ZINCRBY" } else { "EVALSHA" };
            assert_read_last(taken.last().unwrap(), drawn);
        }
        store.seal(&many[0], Fence::new(1).unwrap()).await.unwrap();
        assert_read_last(turns.take().last().unwrap(), "EVALSHA");
        store.renew_sampled(&leases).await.unwrap();
        let taken = turns.take();
        assert_eq!(taken.len(), if known { 1 } else { 2 });
        assert_read_last(taken.last().unwrap(), "EVALSHA");
        leases.clear();
    }
}

fn assert_read_last(written: &str, work: &str) {
    let place = |word: &str| written.rfind(&format!("\r\n{word}\r\n"));
    let (work, mark) = (place(work).unwrap(), place("HGET").unwrap());
    assert!(work < mark, "{written}");
    assert!(mark < place("TIME").unwrap(), "{written}");
}
