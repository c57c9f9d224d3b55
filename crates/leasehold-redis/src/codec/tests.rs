//! The codec: what it writes, and how it reads each answer.

use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::env::SystemEntropy;
use leasehold::look::{ClientId, ClientInfo, Owner};
use leasehold::member::{DataGeneration, MemberId, MemberRecordEdit, MemberSet, RunId};
use leasehold::store::{LockRequest, Permits};
use leasehold::{ErrorKind, Fence, Key, Mode};
use leasehold_quorum::{
    Lease, LeaseState, Position, RecordAction, Reply, Request, Requeue, Successor,
};

use super::{Codec, Decoded};
use crate::resp::Value;

fn codec() -> Codec {
    Codec {
        prefix: "app:".into(),
        user: "ann".into(),
        client: "0123456789abcdef".parse().unwrap(),
    }
}

fn lock_request(mode: Mode) -> Arc<LockRequest> {
    let client: ClientId = codec().client;
    let began = WallTime::from_micros(1_763_637_400_000_000);
    let owner = Owner::at(client, began, &SystemEntropy);
    let info = ClientInfo::new(client, "host".into(), 1, "test".into(), began);
    let key = Key::new("deploy").unwrap();
    let lock_request = LockRequest::new(key, owner, Duration::from_secs(9), began, Arc::new(info));
    Arc::new(lock_request.with_mode(mode))
}

fn acquire(lock_request: &Arc<LockRequest>) -> Request {
    Request::Acquire {
        lock_request: lock_request.clone(),
        proposal: 7,
        position: Position::Ticket(5),
        preferred: None,
    }
}

fn lease(lock_request: &Arc<LockRequest>) -> Lease {
    Lease {
        lock_request: lock_request.clone(),
        fence: Fence::new(7).unwrap(),
        slot: None,
    }
}

/// One request of each kind.
fn requests() -> Vec<Request> {
    let lock_request = lock_request(Mode::Exclusive);
    let data_generation = DataGeneration::parse("0123456789abcdef").unwrap();
    let ids = [MemberId::new("a")];
    let edit = MemberRecordEdit {
        expected: None,
        set: MemberSet::new(ids, Duration::from_secs(60), Duration::from_millis(250)),
        generation: 1,
        run: RunId::new("run"),
        durable: false,
        data_generation,
        age: None,
        seen: Vec::new(),
    };
    let successor = Successor {
        lock_request: lock_request.clone(),
        proposal: 8,
        ticket: 6,
        preferred: None,
    };
    vec![
        Request::TryAcquire {
            lock_request: lock_request.clone(),
            proposal: 7,
            expire: true,
        },
        Request::DrawFence {
            lock_request: lock_request.clone(),
        },
        acquire(&lock_request),
        Request::Free {
            lock_request: lock_request.clone(),
        },
        Request::Release {
            lock_request: lock_request.clone(),
            requeue: Some(Requeue {
                owner: lock_request.owner,
                ticket: 4,
            }),
            successor: Some(successor),
        },
        Request::Dequeue {
            lock_request: lock_request.clone(),
        },
        Request::Renew(vec![lease(&lock_request); 65]),
        Request::Heartbeat(vec![lock_request.clone()]),
        Request::Heartbeat(Vec::new()),
        Request::ConfirmFence {
            lock_request: lock_request.clone(),
            fence: Fence::new(7).unwrap(),
        },
        Request::Repair(vec![lease(&lock_request)]),
        Request::Record(lock_request.key.clone(), RecordAction::Open(Fence::MAX)),
        Request::Record(lock_request.key.clone(), RecordAction::Read),
        Request::Status,
        Request::WriteMemberRecord(Box::new(edit)),
        Request::RecordObservation(vec![(MemberId::new("b"), data_generation)]),
        Request::RecordObservation(Vec::new()),
        Request::Renew(Vec::new()),
    ]
}

fn decode(request: &Request, answers: &[Value]) -> Reply {
    match codec().decode(request, answers) {
        Decoded::Reply(reply) => reply,
        Decoded::NoScript(script) => panic!("no script {}", script.name),
    }
}

fn text(text: &str) -> Value {
    Value::Bytes(text.as_bytes().to_vec())
}

fn encoded(request: &Request) -> String {
    let mut bytes = Vec::new();
    codec().encode(request, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Returns the words of all commands.
fn words(request: &Request) -> Vec<String> {
    let text = encoded(request);
    let lines = text
        .split("\r\n")
        .filter(|line| !line.starts_with(['*', '$']));
    lines.map(str::to_owned).collect()
}

#[test]
fn plain_attempt_is_three_commands() {
    let lock_request = lock_request(Mode::Exclusive);
    let request = Request::TryAcquire {
        lock_request: lock_request.clone(),
        proposal: 7,
        expire: true,
    };
    let expected = format!(
        "SET app:deploy {} NX GET PX 9000 \
         ZADD leasehold:fence:0:{{app:deploy}}:app:deploy GT CH 7 f \
         PEXPIRE leasehold:fence:0:{{app:deploy}}:app:deploy 604800000 ",
        lock_request.owner
    );
    assert_eq!(words(&request).join(" "), expected);
}

#[test]
fn script_call_names_keys_and_arguments() {
    let two = Mode::Permit(Permits::new(2).unwrap());
    let lock_request = lock_request(two);
    let words = words(&acquire(&lock_request));
    assert_eq!(words[0], "EVALSHA");
    assert_eq!(words[2..4], ["6", "leasehold:present"]);
    assert_eq!(words[8], "leasehold:slots:{app:deploy}:app:deploy");
    let entry = format!("{}/p2", lock_request.owner);
    assert_eq!(words[9..14], [&*entry, "9000", "7", "5", ""]);
}

#[test]
fn each_request_announces_its_answers() {
    for request in requests() {
        let mut bytes = Vec::new();
        let count = codec().encode(&request, &mut bytes).unwrap();
        assert_eq!(count, Codec::answers(&request), "{request:?}");
        let lines = bytes.split(|byte| *byte == b'\n');
        let is_head = |line: &&[u8]| matches!(line, [b'*', digit, ..] if digit.is_ascii_digit());
        assert_eq!(lines.filter(is_head).count(), count, "{request:?}");
    }
}

#[test]
fn unexpected_answers_are_errors() {
    let strange = [
        Value::Null,
        Value::Integer(-9),
        text("strange"),
        Value::Array(Vec::new()),
        Value::Array(vec![Value::Null]),
        Value::Array(vec![Value::Integer(1), Value::Null, Value::Null]),
        Value::Map(vec![(Value::Null, Value::Null)]),
        Value::error("ERR", "something"),
        Value::error("WRONGTYPE", "Operation against a key"),
    ];
    for request in requests() {
        let count = Codec::answers(&request);
        for value in strange.iter().filter(|_| count > 0) {
            for answers in [vec![value.clone(); count], Vec::new()] {
                let reply = decode(&request, &answers);
                let is_sound = match &reply {
                    Reply::Failed(_) => true,
                    Reply::Renewed(states) => {
                        let failed = |state: &_| matches!(state, LeaseState::Failed(_));
                        states.len() == 65 && states.iter().all(failed)
                    }
                    // A lock of another library.
                    Reply::Busy(_) => matches!(request, Request::TryAcquire { .. }),
                    // Such a lock counts as one without a position.
                    Reply::Waiting(states) => states.iter().all(|state| !state.turn),
                    // Any number says how many were new, or that the record had another epoch.
                    Reply::Recorded(_) => *value == Value::Integer(-9),
                    // Nothing is written.
                    Reply::Record(_) => *value == Value::Array(Vec::new()),
                    _ => false,
                };
                let name = words(&request)[0].clone();
                assert!(is_sound, "{name} {value:?}");
            }
        }
    }
}

#[test]
fn unknown_script_is_named() {
    for request in requests() {
        let count = Codec::answers(&request);
        let answers = vec![Value::error("NOSCRIPT", "No matching script"); count];
        let is_call = encoded(&request).contains("EVALSHA");
        let decoded = codec().decode(&request, &answers);
        let names_script = match decoded {
            Decoded::NoScript(script) => encoded(&request).contains(script.sha1()),
            Decoded::Reply(_) => false,
        };
        assert_eq!(names_script, is_call, "{request:?}");
    }
}

#[test]
fn error_after_the_grant_may_have_taken_effect() {
    let lock_request = lock_request(Mode::Exclusive);
    let request = Request::TryAcquire {
        lock_request,
        proposal: 7,
        expire: true,
    };
    let refused = Value::error("OOM", "command not allowed");
    let lost = [Value::Null, refused.clone(), refused.clone()];
    let early = [refused.clone(), refused.clone(), refused];
    for (answers, effect) in [
        (lost, leasehold::Effect::Unknown),
        (early, leasehold::Effect::None),
    ] {
        match decode(&request, &answers) {
            Reply::Failed(error) => assert_eq!(error.effect(), effect),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn fences_are_exact_in_every_notation() {
    let request = Request::DrawFence {
        lock_request: lock_request(Mode::Exclusive),
    };
    let read = |score: &str| match decode(&request, &[text(score)]) {
        Reply::Granted { fence, .. } => Ok(fence.get()),
        Reply::Failed(error) => Err(error.kind()),
        other => panic!("{other:?}"),
    };
    assert_eq!(read("1763637400000001"), Ok(1_763_637_400_000_001));
    assert_eq!(read("1.7636374e+15"), Ok(1_763_637_400_000_000));
    assert_eq!(read("9007199254740991"), Ok(Fence::MAX.get()));
    for damaged in ["9007199254740992", "0", "-5", "1.5", "inf", "nan"] {
        assert_eq!(read(damaged), Err(ErrorKind::Corrupt), "{damaged}");
    }
    assert_eq!(read("many"), Err(ErrorKind::InvalidResponse));
}

#[test]
fn proposal_that_is_no_fence_is_not_sent() {
    let lock_request = lock_request(Mode::Exclusive);
    let proposal = Fence::MAX.get() + 1;
    let mut bytes = b"before".to_vec();
    let request = Request::TryAcquire {
        lock_request,
        proposal,
        expire: true,
    };
    let error = codec().encode(&request, &mut bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(bytes, b"before");
}

#[test]
fn permit_beyond_the_number_is_invalid() {
    let two = Mode::Permit(Permits::new(2).unwrap());
    let answer = |slot| {
        let parts = [
            Value::Integer(1),
            text("7"),
            Value::Integer(slot),
            Value::Integer(0),
        ];
        decode(
            &acquire(&lock_request(two)),
            &[Value::Array(parts.to_vec())],
        )
    };
    assert!(matches!(answer(1), Reply::Granted { slot: Some(slot), .. } if slot.get() == 1));
    for wrong in [-1, 2] {
        let reply = answer(wrong);
        assert!(
            matches!(reply, Reply::Failed(error) if error.kind() == ErrorKind::InvalidResponse)
        );
    }
}

#[test]
fn error_of_one_lease_is_its_own() {
    let leases = [(); 2].map(|()| lease(&lock_request(Mode::Exclusive)));
    let request = Request::Renew(leases.to_vec());
    let answers = [Value::Integer(1), text("OOM command not allowed")];
    let reply = decode(&request, &[Value::Array(answers.to_vec())]);
    let Reply::Renewed(states) = reply else {
        panic!("{reply:?}")
    };
    assert!(matches!(states[0], LeaseState::Renewed));
    let LeaseState::Failed(error) = &states[1] else {
        panic!("{states:?}")
    };
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(error.effect(), leasehold::Effect::Unknown);
}
