//! The proxy causes the faults that it promises.
#![allow(missing_docs, reason = "a test program has no API")]

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use leasehold::clock::{Clock, SystemClock};
use leasehold_testkit::faults::{Cut, NetworkFault, Proxy};
use leasehold_testkit::servers::{LIMIT, RedisServer, Reply, RespConnection, until};

fn pong() -> Reply {
    Reply::Status("PONG".into())
}

fn server_clients(server: &RedisServer) -> usize {
    match server.command(&["CLIENT", "LIST"]) {
        // The connection that asks is in the list, too.
        Reply::Bulk(list) => list.lines().count() - 1,
        other => panic!("CLIENT LIST: {other:?}"),
    }
}

#[test]
fn proxy_without_fault_passes_everything() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.port());
    let mut connection = RespConnection::open(proxy.port()).unwrap();
    assert_eq!(connection.call(&["PING"]).unwrap(), pong());
    let big = "x".repeat(1 << 20);
    connection.call(&["SET", "k", &big]).unwrap();
    assert_eq!(connection.call(&["GET", "k"]).unwrap(), Reply::Bulk(big));
    assert_eq!(server_clients(&server), 1);
    drop(connection);
    until("the server sees the close", || server_clients(&server) == 0);
    until("the proxy forgets it", || proxy.connections() == 0);
}

#[test]
fn cut_resets_both_sides() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.port());
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    let mut answer = [0; 7];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
    proxy.cut();
    let reset = stream.read(&mut answer).unwrap_err();
    assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
    until("the server is rid of it", || server_clients(&server) == 0);
    let mut again = RespConnection::open(proxy.port()).unwrap();
    assert_eq!(again.call(&["PING"]).unwrap(), pong());
}

#[test]
fn what_refuses_refuses_until_the_weather_clears() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.port());
    let mut open = RespConnection::open(proxy.port()).unwrap();
    open.call(&["PING"]).unwrap();
    let ask = |connection: std::io::Result<RespConnection>| connection?.call(&["PING"]);
    proxy.set(NetworkFault::Refusing);
    assert!(open.call(&["PING"]).is_err());
    assert!(ask(RespConnection::open(proxy.port())).is_err());
    proxy.set(NetworkFault::None);
    assert_eq!(ask(RespConnection::open(proxy.port())).unwrap(), pong());
}

#[test]
fn half_open_connection_stays_silent() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.port());
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
    let short = Some(Duration::from_millis(200));
    stream.set_read_timeout(short).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    stream.read_exact(&mut [0; 7]).unwrap();
    proxy.set(NetworkFault::HalfOpen);
    stream.write_all(b"SET k v\r\n").unwrap();
    let silence = |stream: &mut TcpStream| stream.read(&mut [0; 7]).unwrap_err().kind();
    assert_eq!(silence(&mut stream), ErrorKind::WouldBlock);
    proxy.set(NetworkFault::None);
    stream.write_all(b"PING\r\n").unwrap();
    assert_eq!(silence(&mut stream), ErrorKind::WouldBlock);
    assert_eq!(server.command(&["GET", "k"]), Reply::Nil, "never arrived");
    assert_eq!(server_clients(&server), 1, "it believes in it still");
    let mut fresh = RespConnection::open(proxy.port()).unwrap();
    assert_eq!(fresh.call(&["PING"]).unwrap(), pong());
}

#[test]
fn slow_answers_delay_replies_only() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.port());
    let delay = Duration::from_millis(400);
    let mut connection = RespConnection::open(proxy.port()).unwrap();
    connection.call(&["PING"]).unwrap();
    proxy.set(NetworkFault::SlowAnswers(delay));
    std::thread::scope(|scope| {
        let asked = SystemClock.now();
        let answer = scope.spawn(move || {
            let reply = connection.call(&["SET", "k", "v"]).unwrap();
            (reply, SystemClock.now().since(asked))
        });
        until("the server has it", || {
            server.command(&["GET", "k"]) == Reply::Bulk("v".into())
        });
        let (reply, after) = answer.join().unwrap();
        assert_eq!(reply, Reply::Status("OK".into()));
        assert!(after >= delay, "answered after {after:?}");
    });
}

/// Returns the answer to a request during a fault, which ends when `condition` holds.
fn during(fault: NetworkFault, condition: impl Fn(&RedisServer, &Proxy) -> bool) -> Reply {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.port());
    let mut connection = RespConnection::open(proxy.port()).expect("a connection");
    connection.call(&["PING"]).expect("an answer");
    proxy.set(fault);
    std::thread::scope(|scope| {
        let answer = scope.spawn(move || {
            let reply = connection.call(&["SET", "k", "v"]).expect("an answer");
            (reply, SystemClock.now())
        });
        until("the request is on its way", || condition(&server, &proxy));
        let cleared = SystemClock.now();
        proxy.set(NetworkFault::None);
        let (reply, answered) = answer.join().expect("an answer");
        assert!(answered >= cleared, "answered during the fault");
        reply
    })
}

fn has_value(server: &RedisServer) -> bool {
    server.command(&["GET", "k"]) == Reply::Bulk("v".into())
}

#[test]
fn mute_server_answers_when_the_fault_clears() {
    let reply = during(NetworkFault::Mute, |server, _| has_value(server));
    assert_eq!(reply, Reply::Status("OK".into()));
}

#[test]
fn frozen_path_delivers_when_the_fault_clears() {
    let reply = during(NetworkFault::Frozen, |server, proxy| {
        proxy.requests() == 2 && !has_value(server)
    });
    assert_eq!(reply, Reply::Status("OK".into()));
}

#[test]
fn slow_request_outlives_its_connection() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.port());
    let delay = Duration::from_millis(300);
    proxy.set(NetworkFault::SlowRequests(delay));
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
    let sent = SystemClock.now();
    stream.write_all(b"SET k v\r\n").unwrap();
    drop(stream);
    until("the request arrives", || has_value(&server));
    assert!(SystemClock.now().since(sent) >= delay);
}

#[test]
fn cut_request_never_arrives() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.port());
    let mut connection = RespConnection::open(proxy.port()).unwrap();
    proxy.cut_at(2, Cut::BeforeRequest);
    assert_eq!(connection.call(&["PING"]).unwrap(), pong());
    assert!(connection.call(&["SET", "k", "v"]).is_err());
    assert!(proxy.has_cut());
    until("the server sees the end", || server_clients(&server) == 0);
    assert!(!has_value(&server));
    assert_eq!(proxy.requests(), 2);
    let mut again = RespConnection::open(proxy.port()).unwrap();
    assert_eq!(again.call(&["PING"]).unwrap(), pong());
}

#[test]
fn cut_answer_is_lost_but_carried_out() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.port());
    let mut connection = RespConnection::open(proxy.port()).unwrap();
    proxy.cut_at(1, Cut::BeforeAnswer);
    assert!(connection.call(&["SET", "k", "v"]).is_err());
    assert!(proxy.has_cut());
    assert!(has_value(&server));
    proxy.cut_at(1, Cut::BeforeAnswer);
    assert!(!proxy.has_cut(), "no further request came");
}

#[test]
fn a_dropped_proxy_is_gone() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.port());
    let port = proxy.port();
    let mut connection = RespConnection::open(port).unwrap();
    connection.call(&["PING"]).unwrap();
    drop(proxy);
    assert!(connection.call(&["PING"]).is_err());
    until("nobody listens", || RespConnection::open(port).is_err());
}
