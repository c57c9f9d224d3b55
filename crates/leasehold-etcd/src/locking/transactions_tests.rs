use std::sync::Arc;
use std::time::Duration;

use leasehold::Key;
use leasehold::env::Env;
use leasehold::look::Owner;

use super::*;
use crate::proto::{KeyValue, RangeResponse, ResponseHeader, ResponseOp};

fn request() -> LockRequest {
    let env = Env::default();
    let client = Arc::new(env.this_process(None));
    let now = env.clock.wall();
    let owner = Owner::at(client.id, now, &*env.entropy);
    let key = Key::new("job").unwrap();
    LockRequest::new(key, owner, Duration::from_secs(30), now, client)
}

fn attempt<'a>(names: &'a Names, request: &'a LockRequest, standing: Standing) -> Attempt<'a> {
    Attempt {
        names,
        request,
        lease: 0x1f,
        number: 0x1f,
        fence_lease: 7,
        standing,
        announces: request.is_queued(),
    }
}

#[test]
fn revisions_of_a_wrong_server_do_no_harm() {
    let (names, request) = (Names::new(""), request());
    let fence = Fence::new(1).unwrap();
    for revision in [i64::MIN, -1, i64::MAX] {
        let standings = [
            Standing::Newcomer,
            Standing::Barging,
            Standing::Queued(revision),
            Standing::Ahead(revision),
        ];
        for standing in standings {
            let attempt = attempt(&names, &request, standing);
            for condition in [
                Condition::NoOther,
                Condition::UnchangedSince(revision),
                Condition::NoGrantSince(revision),
                Condition::LastGrantAt(revision),
            ] {
                assert!(!attempt.take(condition, fence).compare.is_empty());
            }
        }
    }
}

fn kv(key: &str, created: i64) -> KeyValue {
    KeyValue {
        key: key.into(),
        create_revision: created,
        mod_revision: created,
        value: Vec::new(),
        lease: created,
    }
}

fn answer(succeeded: bool, answers: Vec<OperationAnswer>) -> TxnResponse {
    let revision = 40;
    let header = Some(ResponseHeader {
        member_id: 1,
        revision,
    });
    let answers = answers.into_iter().map(Some);
    TxnResponse {
        header,
        succeeded,
        responses: answers.map(|answer| ResponseOp { answer }).collect(),
    }
}

fn range_of(kvs: &[KeyValue], more: bool) -> OperationAnswer {
    OperationAnswer::Range(RangeResponse {
        header: None,
        kvs: kvs.to_vec(),
        more,
    })
}

/// The puts of a transaction, also of those inside of it.
fn puts(txn: &TxnRequest) -> usize {
    let operations = txn.success.iter().chain(&txn.failure);
    let count = |op: &RequestOp| match &op.operation {
        Some(Operation::Put(_)) => 1,
        Some(Operation::Txn(nested)) => puts(nested),
        _ => 0,
    };
    operations.map(count).sum()
}

const FENCE: Fence = Fence::MAX;

#[test]
fn client_enters_once() {
    let (names, request) = (Names::new(""), request().waiting(true));
    let newcomer = attempt(&names, &request, Standing::Newcomer);
    // Entry and fence, with and without an earlier fence, and the entry of a waiter.
    assert_eq!(puts(&newcomer.take(Condition::NoOther, FENCE)), 5);
    assert_eq!(puts(&newcomer.take(Condition::Never, FENCE)), 1);
    let queued = attempt(&names, &request, Standing::Queued(9));
    assert_eq!(puts(&queued.take(Condition::NoGrantSince(9), FENCE)), 4);
}

#[test]
fn attempt_without_a_wait_is_not_queued() {
    let (names, request) = (Names::new(""), request());
    for standing in [Standing::Newcomer, Standing::Barging] {
        let attempt = attempt(&names, &request, standing);
        let txn = attempt.take(Condition::NoOther, FENCE);
        assert!(txn.failure.is_empty(), "{standing:?}");
    }
}

/// The traffic of other locks, whose keys lie in the range, must not keep the client out.
#[test]
fn client_with_an_entry_compares_single_keys() {
    let (names, request) = (Names::new(""), request().waiting(true));
    for standing in [Standing::Queued(9), Standing::Ahead(9)] {
        let attempt = attempt(&names, &request, standing);
        for condition in [Condition::NoGrantSince(9), Condition::LastGrantAt(9)] {
            let compares = attempt.take(condition, FENCE).compare;
            let is_single = |compare: &Compare| compare.range_end.is_empty();
            assert!(compares.len() == 2 && compares.iter().all(is_single));
        }
    }
}

#[test]
fn first_fence_and_later_ones_are_granted() {
    let (names, request) = (Names::new(""), request());
    let attempt = attempt(&names, &request, Standing::Newcomer);
    let nested = |succeeded, inner| OperationAnswer::Txn(answer(succeeded, inner));
    let read = |inner| attempt.read(answer(true, vec![inner]), FENCE);
    assert_eq!(read(nested(true, vec![])), Some(Step::Granted(FENCE, 40)));
    let later = nested(false, vec![nested(true, vec![])]);
    assert_eq!(read(later), Some(Step::Granted(FENCE, 40)));
    let mut last = kv("leasehold:fence/job", 3);
    last.value = fence_text(Fence::new(7).unwrap());
    let passed = nested(false, vec![nested(false, vec![range_of(&[last], false)])]);
    assert_eq!(
        read(passed),
        Some(Step::FencePassed(Fence::new(7).unwrap()))
    );
    assert_eq!(read(range_of(&[], false)), None, "another form");
}

#[test]
fn failed_condition_says_what_was_written() {
    let (names, request) = (Names::new(""), request().waiting(true));
    let newcomer = attempt(&names, &request, Standing::Newcomer);
    let read = |inner| newcomer.read(answer(false, inner), FENCE);
    let enter = |succeeded| OperationAnswer::Txn(answer(succeeded, vec![]));
    assert_eq!(read(vec![enter(true)]), Some(Step::Entered(40)));
    assert_eq!(read(vec![enter(false)]), Some(Step::KeyInUse));
    assert_eq!(read(vec![]), Some(Step::NotFree(40)));
    assert_eq!(read(vec![range_of(&[], false)]), None, "another form");
}

#[test]
fn fences_are_ordered_as_text() {
    let text = |value| fence_text(Fence::new(value).unwrap());
    assert!(text(9) < text(10) && text(10) < fence_text(Fence::MAX));
}

#[test]
fn lock_passes_on_only_from_an_unchanged_entry() {
    let (names, request) = (Names::new(""), request());
    let attempt = attempt(&names, &request, Standing::Queued(30));
    let fence = Fence::new(9).unwrap();
    let question = attempt.pass_on((b"job/2", 20), 30, fence);
    let created = CompareValue::CreateRevision(30);
    let compares = [
        Compare::is_at(b"job/2", 20),
        Compare::one(b"job/1f".into(), CompareResult::Equal, created),
    ];
    assert_eq!(question.compare, compares);
    assert!(question.failure.is_empty(), "otherwise nothing changes");
    let delete = DeleteRangeRequest::one(b"job/2");
    assert_eq!(question.success[1], Operation::Delete(delete).into());
    let drawn = |succeeded| OperationAnswer::Txn(answer(succeeded, Vec::new()));
    let read = |answer| read_pass_on(answer, fence);
    assert_eq!(read(answer(true, vec![drawn(true)])), Some((fence, 40)));
    assert_eq!(read(answer(false, Vec::new())), None);
    let passed = OperationAnswer::Txn(answer(false, vec![drawn(false)]));
    assert_eq!(read(answer(true, vec![passed])), None, "a later fence");
}
