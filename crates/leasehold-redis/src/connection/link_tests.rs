use std::sync::Arc;

use leasehold::ambient::{Ambient, SystemEntropy};
use leasehold::clock::WallTime;
use leasehold::{Claim, Effect, ErrorKind, Key, Owner};

use super::*;
use crate::codec::script_of;
use crate::resp::CommandWriter;

const START: BootInstant = BootInstant::from_nanos(0);

fn client() -> Arc<ClientInfo> {
    Arc::new(ClientInfo::of_this_process(&Ambient::default(), None))
}

fn connected() -> Link {
    connected_by(None)
}

fn connected_by(half: Option<WriteHalf>) -> Link {
    let client = client();
    let codec = Codec {
        prefix: String::new(),
        user: "ann".into(),
        client: client.id,
        foreign_gap: Duration::ZERO,
    };
    let mut link = Link::new(codec, Some(client));
    link.connect(START, RunId::new("run"), half);
    link
}

fn owner() -> Owner {
    let client = "0123456789abcdef".parse().unwrap();
    Owner::at(client, WallTime::from_micros(7), &SystemEntropy)
}

fn release(owner: Owner) -> Request {
    let key = Key::new("lock").unwrap();
    let ttl = Duration::from_secs(10);
    let claim = Claim::new(key, owner, ttl, WallTime::from_micros(7), client());
    Request::Release {
        claim: Arc::new(claim),
        requeue: None,
        successor: None,
    }
}

fn question(id: u64) -> Question {
    let script = script_of(&release(owner())).expect("a script");
    let mut bytes = Vec::new();
    let mut writer = CommandWriter::new(&mut bytes);
    writer.command("EVALSHA").arg(script.sha1()).number(0);
    Question {
        id: QuestionId(id),
        commands: writer.finish(),
        bytes,
        script: Some(script),
    }
}

/// Returns the bytes of the next batch as text.
fn batch(link: &mut Link) -> String {
    let mut batch = link.take_for_task(0).expect("a batch");
    let text = String::from_utf8(batch.bytes.clone()).unwrap();
    batch.written = batch.bytes.len();
    link.finish(batch);
    text
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
fn receive(link: &mut Link, values: impl IntoIterator<Item = Value>) -> Result<Vec<String>, Error> {
    let mut events = Vec::new();
    let mut values = values.into_iter().collect();
    link.receive(START, &mut values, |event| {
        events.push(match event {
            Event::Batch(batch) => format!("{} replies", batch.replies.len()),
            Event::Notification(_) => "notification".into(),
            Event::Answer(_, replies) => format!("{replies:?}"),
        });
    })?;
    Ok(events)
}

fn released() -> Value {
    Value::Array(vec![Value::Integer(1)])
}

#[test]
fn script_is_loaded_before_its_first_use() {
    let mut link = connected();
    for (id, loads) in [(1, 1), (2, 0)] {
        link.push(RequestId(id), release(owner()));
        let written = batch(&mut link);
        assert_eq!(written.matches("\r\nLOAD\r\n").count(), loads);
        assert_eq!(written.matches("EVALSHA").count(), 1);
        let loaded = (0..loads).map(|_| bytes("sha"));
        let replies = loaded.chain([released()]).chain(sample());
        assert_eq!(receive(&mut link, replies).unwrap(), ["1 replies"]);
        assert!(!link.is_busy());
    }
    link.connect(START, RunId::new("next"), None);
    link.push(RequestId(3), release(owner()));
    assert!(batch(&mut link).contains("\r\nLOAD\r\n"));
}

#[test]
fn forgotten_script_ends_the_connection() {
    let mut link = connected();
    link.push(RequestId(1), release(owner()));
    batch(&mut link);
    let unknown = Value::error("NOSCRIPT", "No matching script");
    let error = receive(&mut link, [bytes("sha"), unknown]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
}

#[test]
fn user_without_the_right_to_load_is_told() {
    let mut link = connected();
    link.ask(question(1));
    batch(&mut link);
    let refused = Value::error("NOPERM", "no permissions to run the 'script|load' command");
    let unknown = Value::error("NOSCRIPT", "No matching script");
    let events = receive(&mut link, [refused, unknown]).unwrap();
    assert!(events[0].contains("script|load"), "{events:?}");
}

#[test]
fn notification_follows_the_replies_before_it() {
    let mut link = connected();
    link.push(RequestId(1), release(owner()));
    link.push(RequestId(2), release(owner()));
    batch(&mut link);
    let early = receive(&mut link, [turn(owner()), bytes("sha")]).unwrap();
    assert_eq!(early, ["notification"]);
    let within = receive(&mut link, [released(), turn(owner()), released()]).unwrap();
    assert!(within.is_empty(), "{within:?}");
    let end = receive(&mut link, sample()).unwrap();
    assert_eq!(end, ["2 replies", "notification"]);
}

#[test]
fn replies_in_pieces_make_one_batch() {
    let mut link = connected();
    link.push(RequestId(1), release(owner()));
    batch(&mut link);
    let [time, epoch] = sample();
    for value in [bytes("sha"), released(), time] {
        assert!(receive(&mut link, [value]).unwrap().is_empty());
    }
    assert_eq!(receive(&mut link, [epoch]).unwrap(), ["1 replies"]);
}

#[test]
fn reply_to_no_command_is_an_error() {
    let mut link = connected();
    let error = receive(&mut link, [Value::Null]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidResponse);
}

/// Returns the questions that end with the connection, and their errors.
fn disconnect(link: &mut Link) -> Vec<(QuestionId, Effect)> {
    let mut failed = Vec::new();
    let gone = Error::new(ErrorKind::Unreachable, "gone");
    link.disconnect(&gone, |id, error| failed.push((id, error.effect())));
    failed
}

#[test]
fn broken_connection_fails_its_callers() {
    let mut link = connected();
    link.ask(question(1));
    assert_eq!(disconnect(&mut link), [(QuestionId(1), Effect::Unknown)]);
    assert!(!link.push(RequestId(1), Request::Status));
}

#[test]
fn questions_wait_for_a_connection() {
    let mut link = connected();
    disconnect(&mut link);
    link.ask(question(1));
    let failed = disconnect(&mut link);
    assert!(matches!(failed[..], [(QuestionId(1), effect)] if effect != Effect::Unknown));
    link.ask(question(2));
    link.ask(question(3));
    link.connect(START, RunId::new("next"), None);
    link.ask_pending(|id| id == QuestionId(3));
    assert_eq!(batch(&mut link).matches("EVALSHA").count(), 1);
}

#[test]
fn forgotten_script_is_loaded_for_the_next_question() {
    let mut link = connected();
    for id in [1, 2] {
        link.ask(question(id));
        assert!(batch(&mut link).contains("LOAD"));
        let unknown = Value::error("NOSCRIPT", "No matching script");
        let events = receive(&mut link, [bytes("sha"), unknown]).unwrap();
        assert!(events[0].contains("NOSCRIPT"), "{events:?}");
        receive(&mut link, sample()).unwrap();
    }
}

#[test]
fn second_batch_waits_for_the_first_one() {
    let mut link = connected();
    link.push(RequestId(1), Request::Status);
    let mut first = link.take_for_task(0).expect("a batch");
    link.push(RequestId(2), Request::Status);
    assert!(link.take_for_task(0).is_none());
    first.written = 1;
    link.finish(first);
    let mut rest = link.take_for_task(0).expect("the rest");
    assert_eq!(rest.written, 1);
    rest.written = rest.bytes.len();
    link.finish(rest);
    assert!(
        link.take_for_task(0)
            .is_some_and(|second| second.written == 0)
    );
}

#[test]
fn task_writes_what_follows_a_rest() {
    let mut link = connected_by(Some(WriteHalf::closed()));
    link.push(RequestId(1), Request::Status);
    let first = link.take(0).expect("a batch");
    link.push(RequestId(2), Request::Status);
    assert!(link.take(0).is_none(), "two writers");
    link.finish(first);
    let mut rest = link.take_for_task(0).expect("the rest");
    rest.written = rest.bytes.len();
    link.finish(rest);
    // No other thread learns that the rest is written.
    assert!(link.take_for_task(0).is_some());
}

#[test]
fn batch_of_an_earlier_connection_is_dropped() {
    let mut link = connected();
    link.push(RequestId(1), Request::Status);
    let batch = link.take_for_task(0).expect("a batch");
    disconnect(&mut link);
    assert!(link.is_writing());
    link.finish(batch);
    assert!(!link.is_writing() && link.take_for_task(0).is_none());
}

#[test]
fn client_says_who_it_is_every_minute() {
    let mut link = connected();
    let mut now = START;
    for (seconds, is_said) in [(59, false), (2, true), (30, false), (31, true)] {
        now = now + Duration::from_secs(seconds);
        link.receive(now, &mut Vec::new(), |_| {}).unwrap();
        link.push(RequestId(1), Request::Status);
        assert_eq!(batch(&mut link).contains("HSET"), is_said, "{now:?}");
    }
}
