use super::*;

const START_US: u64 = 1_700_000_000_000_000;

fn server() -> (FakeRedis, ConnectionId) {
    let mut server = FakeRedis::new(1, START_US);
    let connection = server.connect();
    (server, connection)
}

fn message(channel: &str, text: &str) -> Reply {
    Reply::Push(["message", channel, text].map(Reply::bulk).into())
}

#[test]
fn own_messages_come_before_the_reply() {
    let (mut server, connection) = server();
    let requests = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n";
    server.receive(START_US, connection, requests.as_bytes());
    server.take_bytes(connection);
    let request = "*3\r\n$7\r\nPUBLISH\r\n$1\r\na\r\n$2\r\nhi\r\n";
    server.receive(START_US, connection, request.as_bytes());
    let replies = server.take_replies(connection);
    assert_eq!(replies, [message("a", "hi"), Reply::Integer(1)]);
}

#[test]
fn dead_connections_receive_until_disconnected() {
    let (mut server, connection) = server();
    let dead = server.connect();
    server.execute(START_US, dead, &["SUBSCRIBE", "a"]);
    let publish = |server: &mut FakeRedis| {
        let script = "return redis.call('PUBLISH', 'a', 'hi')";
        server.execute(START_US, connection, &["EVAL", script, "0"])
    };
    assert_eq!(publish(&mut server), Reply::Integer(1));
    assert_eq!(server.take_replies(dead), [message("a", "hi")]);
    server.disconnect(dead);
    assert!(!server.is_connected(dead));
    assert_eq!(publish(&mut server), Reply::Integer(0));
}

#[test]
fn unsubscribe_without_channels_leaves_all() {
    let (mut server, connection) = server();
    server.execute(START_US, connection, &["HELLO", "3"]);
    server.execute(START_US, connection, &["SUBSCRIBE", "a", "b"]);
    server.take_replies(connection);
    let confirmed = |channel: &str, count| {
        let words = ["unsubscribe", channel].map(Reply::bulk);
        Reply::Push(words.into_iter().chain([Reply::Integer(count)]).collect())
    };
    let reply = server.execute(START_US, connection, &["UNSUBSCRIBE"]);
    assert_eq!(reply, confirmed("b", 0));
    assert_eq!(server.take_replies(connection), [confirmed("a", 1)]);
    let reply = server.execute(START_US, connection, &["PUBLISH", "b", "hi"]);
    assert_eq!(reply, Reply::Integer(0));
}

#[test]
fn expiry_follows_the_clock() {
    let (mut server, connection) = server();
    let mut at = |ms: u64, words: &[&str]| server.execute(START_US + ms * 1000, connection, words);
    at(0, &["SET", "a", "x", "PX", "100"]);
    assert_eq!(at(100, &["PTTL", "a"]), Reply::Integer(0));
    assert_eq!(at(100, &["GET", "a"]), Reply::bulk("x"));
    // The clock was set back.
    assert_eq!(at(0, &["PTTL", "a"]), Reply::Integer(100));
    assert_eq!(at(101, &["GET", "a"]), Reply::Nil);
    assert_eq!(at(0, &["GET", "a"]), Reply::Nil);
}

#[test]
fn scripts_see_the_time_of_the_call() {
    let (mut server, connection) = server();
    let script = "return redis.call('TIME')";
    let time = server.execute(START_US + 7, connection, &["EVAL", script, "0"]);
    let parts = ["1700000000", "7"].map(Reply::bulk);
    assert_eq!(time, Reply::Array(parts.into()));
}

#[test]
fn restart_ends_connections_and_forgets_scripts() {
    for keeps_data in [false, true] {
        let (mut server, connection) = server();
        let run_id = server.run_id();
        server.execute(START_US, connection, &["SET", "a", "x"]);
        let sha = server.execute(START_US, connection, &["SCRIPT", "LOAD", "return 1"]);
        server.execute(START_US, connection, &["SUBSCRIBE", "a"]);
        server.restart(START_US + 5_000_000, keeps_data);
        assert!(!server.is_connected(connection));
        assert_ne!(server.run_id(), run_id);
        let anew = server.connect();
        let mut ask = |words: &[&str]| server.execute(START_US + 7_000_000, anew, words);
        let Reply::Bulk(sha) = sha else {
            panic!("{sha:?}")
        };
        let sha = str::from_utf8(&sha).unwrap();
        assert_eq!(ask(&["EVALSHA", sha, "0"]).error_code(), Some("NOSCRIPT"));
        assert_eq!(ask(&["EXISTS", "a"]), Reply::flag(keeps_data));
        assert_eq!(ask(&["PUBLISH", "a", "hi"]), Reply::Integer(0));
        let Reply::Bulk(info) = ask(&["INFO", "server"]) else {
            panic!("INFO is text");
        };
        let info = String::from_utf8(info).unwrap();
        assert!(info.contains("uptime_in_seconds:2\r\n"), "{info}");
    }
}

#[test]
fn denied_commands_fail_everywhere() {
    let (mut server, connection) = server();
    server.deny("publish");
    let mut ask = |words: &[&str]| server.execute(START_US, connection, words);
    assert_eq!(ask(&["PUBLISH", "a", "hi"]).error_code(), Some("NOPERM"));
    let script = "return redis.pcall('PUBLISH', 'a', 'hi').err";
    let reply = ask(&["EVAL", script, "0"]);
    let reason = "ERR The user executing the script can't run this command or subcommand";
    assert_eq!(reply, Reply::bulk(reason));
    server.allow("PUBLISH");
    let reply = server.execute(START_US, connection, &["PUBLISH", "a", "hi"]);
    assert_eq!(reply, Reply::Integer(0));
}

#[test]
fn requests_arrive_in_pieces() {
    let (mut server, connection) = server();
    let requests = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nx\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n";
    for byte in requests {
        server.receive(START_US, connection, &[*byte]);
    }
    assert_eq!(server.take_bytes(connection), b"+OK\r\n$1\r\nx\r\n");
    assert_eq!(server.take_bytes(connection), b"");
    server.receive(START_US, connection, b"GET a\r\n");
    assert!(!server.is_connected(connection));
}

#[test]
fn servers_of_a_thread_have_their_own_data() {
    let (mut first, connection) = server();
    let mut second = FakeRedis::new(2, START_US);
    let other = second.connect();
    let script = "return redis.call('INCR', KEYS[1])";
    let sha = first.execute(START_US, connection, &["SCRIPT", "LOAD", script]);
    let Reply::Bulk(sha) = sha else {
        panic!("{sha:?}")
    };
    let call = ["EVALSHA", str::from_utf8(&sha).unwrap(), "1", "a"];
    let reply = second.execute(START_US, other, &call);
    assert_eq!(reply.error_code(), Some("NOSCRIPT"));
    second.execute(START_US, other, &["SCRIPT", "LOAD", script]);
    for count in 1..3 {
        let count = Reply::Integer(count);
        assert_eq!(first.execute(START_US, connection, &call), count);
        assert_eq!(second.execute(START_US, other, &call), count);
    }
    assert_ne!(first.run_id(), second.run_id());
}

#[test]
fn scans_find_keys_that_stay() {
    let (mut server, connection) = server();
    let mut ask = |words: &[&str]| server.execute(START_US, connection, words);
    for key in 0..50 {
        ask(&["SET", &format!("stays{key}"), "x"]);
        ask(&["SET", &format!("goes{key}"), "x"]);
    }
    let (mut cursor, mut found, mut round) = ("0".to_owned(), Vec::new(), 0);
    loop {
        let reply = ask(&["SCAN", &cursor, "MATCH", "stays*", "COUNT", "7"]);
        let Reply::Array(parts) = reply else {
            panic!("{reply:?}")
        };
        let [Reply::Bulk(next), Reply::Array(keys)] = parts.as_slice() else {
            panic!("{parts:?}");
        };
        found.extend(keys.iter().map(|key| format!("{key:?}")));
        cursor = String::from_utf8(next.clone()).unwrap();
        if cursor == "0" {
            break;
        }
        ask(&["DEL", &format!("goes{round}")]);
        round += 1;
    }
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 50);
}

#[test]
fn settings_show_in_info_and_config() {
    let (mut server, connection) = server();
    server.configure("appendonly", "yes");
    server.set_info("role", "slave");
    let settings = server.execute(START_US, connection, &["CONFIG", "GET", "append*only"]);
    let pair = (Reply::bulk("appendonly"), Reply::bulk("yes"));
    assert_eq!(settings, Reply::Map(vec![pair]));
    let Reply::Bulk(info) = server.execute(START_US, connection, &["INFO"]) else {
        panic!("INFO is text");
    };
    let info = String::from_utf8(info).unwrap();
    assert!(
        info.contains("aof_enabled:1\r\n") && info.contains("role:slave\r\n"),
        "{info}"
    );
}
