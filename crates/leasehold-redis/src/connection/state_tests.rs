use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::env::{Env, SystemEntropy};
use leasehold::look::Owner;
use leasehold::store::LockRequest;
use leasehold::{Effect, ErrorKind, Key};

use leasehold::clock::BootInstant;
use leasehold_quorum::{Request, RequestId};

use super::super::encoder::Encoder;
use super::super::pipeline::Event;
use super::*;
use crate::codec::script_of;
use crate::resp::{CommandWriter, Parser, Value};

const START: BootInstant = BootInstant::from_nanos(0);

fn client() -> Arc<ClientInfo> {
    Arc::new(Env::default().this_process(None))
}

/// A connection, and the socket of its server.
struct Connected {
    connection: Connection,
    server: Socket,
}

impl Connected {
    fn connect(&mut self, run: &str) {
        if self.connection.open.is_some() {
            disconnect(&mut self.connection);
        }
        let [socket, server] = Socket::pair();
        self.connection.connect(RunId::new(run), Arc::new(socket));
        self.server = server;
    }

    /// Writes the next batch. Returns what the server gets.
    fn batch(&mut self) -> String {
        assert!(self.open().write().unwrap());
        self.delivered()
    }

    fn open(&mut self) -> &mut Pipeline {
        self.connection.open.as_mut().expect("an open connection")
    }

    fn delivered(&mut self) -> String {
        let mut bytes = vec![0; 1 << 20];
        let count = self.server.read(&mut bytes).unwrap_or(0);
        bytes.truncate(count);
        String::from_utf8(bytes).unwrap()
    }
}

impl Deref for Connected {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for Connected {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

fn connected() -> Connected {
    let client = client();
    let codec = Codec {
        prefix: String::new(),
        user: "ann".into(),
        client: client.id,
    };
    let [_, server] = Socket::pair();
    let connection = Connection::new(codec, Some(client));
    let mut connected = Connected { connection, server };
    connected.connect("run");
    connected
}

fn push(connection: &mut Connected, id: u64, request: Request) {
    let mut encoder = Encoder::default();
    encoder.begin(&request);
    let open = connection.open();
    open.push(START, &mut encoder, RequestId(id), &request);
}

fn owner() -> Owner {
    let client = "0123456789abcdef".parse().unwrap();
    Owner::at(client, WallTime::from_micros(7), &SystemEntropy)
}

fn release(owner: Owner) -> Request {
    let key = Key::new("lock").unwrap();
    let ttl = Duration::from_secs(10);
    let lock_request = LockRequest::new(key, owner, ttl, WallTime::from_micros(7), client());
    Request::Release {
        lock_request: Arc::new(lock_request),
        requeue: None,
        successor: None,
    }
}

fn raw_request(id: u64) -> RawRequest {
    let script = script_of(&release(owner())).expect("a script");
    let mut bytes = Vec::new();
    let mut writer = CommandWriter::new(&mut bytes);
    writer.command("EVALSHA").arg(script.sha1()).number(0);
    RawRequest {
        id: RawRequestId(id),
        commands: writer.finish(),
        bytes,
        script: Some(script),
    }
}

fn bytes(text: &str) -> Value {
    Value::Bytes(text.as_bytes().to_vec())
}

fn sample() -> [Value; 2] {
    let time = Value::Array(vec![bytes("1763637400"), bytes("7")]);
    [time, Value::Null]
}

fn turn(owner: Owner) -> Value {
    let message = bytes(&format!("turn {owner} lock"));
    Value::Push(vec![bytes("message"), bytes("inbox"), message])
}

/// The events that follow from values, in short.
fn receive(
    connection: &mut Connected,
    values: impl IntoIterator<Item = Value>,
) -> Result<Vec<String>, Error> {
    let mut events = Vec::new();
    let mut parser = Parser::new();
    for value in values {
        let bytes = wire(&value);
        parser.room()[..bytes.len()].copy_from_slice(&bytes);
        parser.filled(bytes.len());
    }
    connection.open().receive(START, &mut parser, |event| {
        events.push(match event {
            Event::Batch(batch) => format!("{} replies", batch.replies.len()),
            Event::Notification(_) => "notification".into(),
            Event::RawReplies(_, replies) => format!("{replies:?}"),
        });
    })?;
    Ok(events)
}

/// Returns a value in the form of RESP3.
fn wire(value: &Value) -> Vec<u8> {
    let all = |kind: char, items: &[Value]| {
        let head = format!("{kind}{}\r\n", items.len()).into_bytes();
        [head, items.iter().flat_map(wire).collect()].concat()
    };
    match value {
        Value::Null => b"_\r\n".to_vec(),
        Value::Integer(number) => format!(":{number}\r\n").into_bytes(),
        Value::Error { code, message } => format!("-{code} {message}\r\n").into_bytes(),
        Value::Array(items) => all('*', items),
        Value::Push(items) => all('>', items),
        other => {
            let bytes = other.as_bytes().expect("a value that the tests use");
            [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
        }
    }
}

fn released() -> Value {
    Value::Array(vec![Value::Integer(1)])
}

#[test]
fn script_is_loaded_before_its_first_use() {
    let mut connection = connected();
    for (id, loads) in [(1, 1), (2, 0)] {
        push(&mut connection, id, release(owner()));
        let written = connection.batch();
        assert_eq!(written.matches("\r\nLOAD\r\n").count(), loads);
        assert_eq!(written.matches("EVALSHA").count(), 1);
        let loaded = (0..loads).map(|_| bytes("sha"));
        let replies = loaded.chain([released()]).chain(sample());
        assert_eq!(receive(&mut connection, replies).unwrap(), ["1 replies"]);
        assert!(!connection.open().is_busy());
    }
    connection.connect("next");
    push(&mut connection, 3, release(owner()));
    assert!(connection.batch().contains("\r\nLOAD\r\n"));
}

#[test]
fn forgotten_script_ends_the_connection() {
    let mut connection = connected();
    push(&mut connection, 1, release(owner()));
    connection.batch();
    let unknown = Value::error("NOSCRIPT", "No matching script");
    let error = receive(&mut connection, [bytes("sha"), unknown]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
}

#[test]
fn user_without_the_right_to_load_is_told() {
    let mut connection = connected();
    connection.ask(raw_request(1));
    connection.batch();
    let refused = Value::error("NOPERM", "no permissions to run the 'script|load' command");
    let unknown = Value::error("NOSCRIPT", "No matching script");
    let events = receive(&mut connection, [refused, unknown]).unwrap();
    assert!(events[0].contains("script|load"), "{events:?}");
}

#[test]
fn notification_follows_the_replies_before_it() {
    let mut connection = connected();
    push(&mut connection, 1, release(owner()));
    push(&mut connection, 2, release(owner()));
    connection.batch();
    let early = receive(&mut connection, [turn(owner()), bytes("sha")]).unwrap();
    assert_eq!(early, ["notification"]);
    let within = receive(&mut connection, [released(), turn(owner()), released()]).unwrap();
    assert!(within.is_empty(), "{within:?}");
    let end = receive(&mut connection, sample()).unwrap();
    assert_eq!(end, ["2 replies", "notification"]);
}

#[test]
fn flood_of_notifications_ends_the_connection() {
    let mut connection = connected();
    push(&mut connection, 1, release(owner()));
    connection.batch();
    receive(&mut connection, [bytes("sha"), released()]).unwrap();
    let mut flood = (0..10_000).map(|_| receive(&mut connection, [turn(owner())]));
    let error = flood.find_map(Result::err).expect("a limit");
    assert_eq!(error.kind(), ErrorKind::InvalidResponse);
    assert!(error.to_string().contains("1000 notifications"), "{error}");
}

#[test]
fn replies_to_one_request_have_a_limit() {
    let mut connection = connected();
    let mut request = raw_request(1);
    request.commands = 100;
    connection.ask(request);
    connection.batch();
    let long = wire(&Value::Bytes(vec![b'x'; Parser::VALUE_MAX - 100]));
    let mut parser = Parser::new();
    let mut answer = || {
        let mut left = long.as_slice();
        while !left.is_empty() {
            let room = parser.room();
            let (next, rest) = left.split_at(room.len().min(left.len()));
            room[..next.len()].copy_from_slice(next);
            parser.filled(next.len());
            left = rest;
        }
        connection.open().receive(START, &mut parser, |_| {})
    };
    let answered = (0..100).take_while(|_| answer().is_ok()).count();
    assert_eq!(answered, 8);
}

#[test]
fn notifications_are_no_answer() {
    let at = |seconds| START + Duration::from_secs(seconds);
    let mut connection = connected();
    push(&mut connection, 1, Request::Status);
    connection.batch();
    connection.open().watch(at(0));
    receive(&mut connection, [turn(owner())]).unwrap();
    connection.open().watch(at(3));
    receive(&mut connection, [turn(owner())]).unwrap();
    connection.open().watch(at(4));
    assert!(connection.open().is_silent().is_some());
}

#[test]
fn replies_in_pieces_make_one_batch() {
    let mut connection = connected();
    push(&mut connection, 1, release(owner()));
    connection.batch();
    let [time, epoch] = sample();
    for value in [bytes("sha"), released(), time] {
        assert!(receive(&mut connection, [value]).unwrap().is_empty());
    }
    assert_eq!(receive(&mut connection, [epoch]).unwrap(), ["1 replies"]);
}

#[test]
fn reply_to_no_command_is_an_error() {
    let mut connection = connected();
    let error = receive(&mut connection, [Value::Null]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidResponse);
}

/// Returns the raw requests that end with the connection, and their errors.
fn disconnect(connection: &mut Connection) -> Vec<(RawRequestId, Effect)> {
    let mut failed = Vec::new();
    let gone = Error::new(ErrorKind::Unreachable, "gone");
    connection.disconnect(&gone, |id, error| failed.push((id, error.effect())));
    failed
}

#[test]
fn broken_connection_fails_its_callers() {
    let mut connection = connected();
    connection.ask(raw_request(1));
    assert_eq!(
        disconnect(&mut connection),
        [(RawRequestId(1), Effect::Unknown)]
    );
    assert!(connection.open.is_none());
}

#[test]
fn questions_wait_for_a_connection() {
    let mut connection = connected();
    disconnect(&mut connection);
    connection.ask(raw_request(1));
    let failed = disconnect(&mut connection);
    assert!(matches!(failed[..], [(RawRequestId(1), effect)] if effect != Effect::Unknown));
    connection.ask(raw_request(2));
    connection.ask(raw_request(3));
    connection.connect("next");
    connection.ask_pending(|id| id == RawRequestId(3));
    assert_eq!(connection.batch().matches("EVALSHA").count(), 1);
}

#[test]
fn forgotten_script_is_loaded_for_the_next_question() {
    let mut connection = connected();
    for id in [1, 2] {
        connection.ask(raw_request(id));
        assert!(connection.batch().contains("LOAD"));
        let unknown = Value::error("NOSCRIPT", "No matching script");
        let events = receive(&mut connection, [bytes("sha"), unknown]).unwrap();
        assert!(events[0].contains("NOSCRIPT"), "{events:?}");
        receive(&mut connection, sample()).unwrap();
    }
}

#[test]
fn full_socket_keeps_the_order_of_requests() {
    let mut connection = connected();
    let mut pushed = 0;
    while connection.open().write().unwrap() {
        pushed += 1;
        push(&mut connection, pushed, Request::Status);
    }
    push(&mut connection, pushed + 1, Request::Status);
    let mut delivered = connection.delivered();
    while connection.open().has_output() {
        let _ = connection.open().write().unwrap();
        delivered += &connection.delivered();
    }
    let mut other = connected();
    let mut expected = String::new();
    for id in 1..=pushed + 1 {
        push(&mut other, id, Request::Status);
        expected += &other.batch();
    }
    assert!(delivered == expected, "{} bytes", delivered.len());
}

#[test]
fn closed_socket_ends_the_connection() {
    let mut connection = connected();
    let [_, other] = Socket::pair();
    connection.server = other;
    push(&mut connection, 1, Request::Status);
    connection.open().write().unwrap_err();
}

#[test]
fn client_registers_before_its_first_attempt() {
    let mut connection = connected();
    let (key, ttl) = (Key::new("lock").unwrap(), Duration::from_secs(10));
    let attempt = Request::TryAcquire {
        lock_request: Arc::new(LockRequest::new(
            key,
            owner(),
            ttl,
            WallTime::from_micros(7),
            client(),
        )),
        proposal: 1,
        expire: false,
    };
    for (is_new, minutes, is_said) in [
        (true, 0, true),
        (false, 0, false),
        (false, 1, true),
        (true, 1, true),
    ] {
        if is_new {
            connection.connect("next");
        }
        let now = START + Duration::from_secs(60 * minutes);
        let open = connection.open();
        open.receive(now, &mut Parser::new(), |_| {}).unwrap();
        let mut encoder = Encoder::default();
        encoder.begin(&attempt);
        open.push(now, &mut encoder, RequestId(1), &attempt);
        let written = connection.batch();
        let record = written.find("HSET");
        assert_eq!(record.is_some(), is_said, "{written}");
        assert!(record < written.find("\r\nSET\r\n"), "{written}");
    }
}
