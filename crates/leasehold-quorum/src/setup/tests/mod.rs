//! What setting up a quorum refuses, and what it writes.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::tests::values::RandomEntropy;
use leasehold_types::{MemberRecord, MemberRecordEdit, Observation, RunId, WallTime};

use super::*;

mod initialize;

const NOW: u64 = 1_000_000_000;

fn set_of(ids: &[&str]) -> MemberSet {
    let ids = ids.iter().map(|id| MemberId::new(*id));
    MemberSet::new(ids, Duration::from_secs(60), Duration::from_millis(250))
}

fn three() -> MemberSet {
    set_of(&["a", "b", "c"])
}

fn four() -> MemberSet {
    set_of(&["a", "b", "c", "d"])
}

/// A member without a record, which holds nothing.
fn empty(id: &str) -> MemberAnswer {
    let clock = WallTime::from_micros(NOW);
    let run = RunId::new(format!("run of {id}"));
    let now = BootInstant::from_nanos(1_000_000);
    MemberAnswer {
        id: MemberId::new(id),
        status: Ok(MemberStatus::new(run, clock, Duration::from_secs(100))),
        held: Ok(None),
        was_used: Ok(false),
        sent: now,
        received: now,
    }
}

/// A member of `set` in this generation.
fn member(id: &str, set: &MemberSet, generation: u64) -> MemberAnswer {
    with(empty(id), |status| {
        status.member_record = Some(member_record(set, generation, status.run.clone()));
    })
}

fn member_record(set: &MemberSet, generation: u64, run: RunId) -> MemberRecord {
    let long_ago = WallTime::from_micros(0);
    MemberRecord {
        set: set.clone(),
        generation,
        changed: long_ago,
        data_generation: DataGeneration::random(&RandomEntropy),
        since: long_ago,
        run,
        durable: false,
        observations: BTreeMap::new(),
    }
}

fn with(mut answer: MemberAnswer, change: impl FnOnce(&mut MemberStatus)) -> MemberAnswer {
    change(answer.status.as_mut().unwrap());
    answer
}

fn silent(id: &str) -> MemberAnswer {
    MemberAnswer {
        status: Err(Error::new(ErrorKind::Unreachable, "no answer")),
        ..empty(id)
    }
}

fn holding(id: &str) -> MemberAnswer {
    MemberAnswer {
        held: Ok(Some(Key::new("deploy").unwrap())),
        ..empty(id)
    }
}

fn edits(
    old: &MemberSet,
    new: &MemberSet,
    answers: &[MemberAnswer],
) -> Result<Vec<Option<MemberRecordEdit>>, Error> {
    Change::new(old, new, answers)?.edits(answers, &RandomEntropy)
}

/// Adds `d`.
fn growth(answers: [MemberAnswer; 4]) -> Result<Vec<Option<MemberRecordEdit>>, Error> {
    edits(&three(), &four(), &answers)
}

fn grown(changed: MemberAnswer) -> Error {
    let set = three();
    let [b, c] = ["b", "c"].map(|id| member(id, &set, 1));
    growth([changed, b, c, empty("d")]).unwrap_err()
}

fn readmit(answers: &[MemberAnswer]) -> Result<Option<MemberRecordEdit>, Error> {
    readmission(&three(), &MemberId::new("a"), answers, &RandomEntropy)
}

fn assert_says(error: &Error, text: &str) {
    let told = error.to_string();
    assert!(told.contains(text), "{told:?} does not say {text:?}");
}

#[test]
fn change_refuses_large_steps() {
    let old = three();
    let refused = |new: &MemberSet| Change::new(&old, new, &[]).unwrap_err();
    assert_says(&refused(&old), "0 servers would join and 0 leave");
    let replaced = set_of(&["a", "b", "d"]);
    assert_says(&refused(&replaced), "1 servers would join and 1 leave");
    assert_says(&refused(&set_of(&["a", "b"])), "keep at least 3");
}

#[test]
fn change_keeps_the_limits_of_the_members() {
    let limits =
        |set: MemberSet| MemberSet::new(set.ids, Duration::from_secs(5), Duration::from_millis(10));
    let (old, new) = (limits(three()), limits(four()));
    let [a, b, c] = ["a", "b", "c"].map(|id| member(id, &old, 1));
    let answers = [a, b, c, empty("d")];
    let change = Change::new(&three(), &four(), &answers).unwrap();
    assert_eq!(change.new_set(), &new);
    let edits = change.edits(&answers, &RandomEntropy).unwrap();
    assert!(edits.iter().flatten().all(|edit| edit.set == new));
    // An interrupted change is continued.
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|id| member(id, &new, 2));
    let change = Change::new(&three(), &four(), &[a, b, c, d]).unwrap();
    assert_eq!(change.new_set(), &new);
}

#[test]
fn change_writes_the_next_generation() {
    let set = three();
    let [a, b, c] = ["a", "b", "c"].map(|id| member(id, &set, 4));
    let edits = growth([a, b, c, empty("d")]).unwrap();
    let edits: Vec<MemberRecordEdit> = edits.into_iter().flatten().collect();
    assert!(
        edits
            .iter()
            .all(|edit| edit.generation == 5 && edit.set == four())
    );
    let ages: Vec<_> = edits.iter().map(|edit| edit.age).collect();
    assert_eq!(ages, [None, None, None, Some(Duration::from_secs(122))]);
}

#[test]
fn interrupted_change_goes_on() {
    let set = three();
    let [b, c] = ["b", "c"].map(|id| member(id, &set, 4));
    let edits = growth([member("a", &four(), 5), b, c, empty("d")]).unwrap();
    let generations: Vec<_> = edits
        .iter()
        .map(|it| it.as_ref().map(|it| it.generation))
        .collect();
    assert_eq!(generations, [None, Some(5), Some(5), Some(5)]);
}

#[test]
fn change_refuses_silent_unfit_and_forgetful_members() {
    assert_says(&grown(silent("a")), "no answer");
    let unfit = with(empty("a"), |it| it.unfit = Some("it evicts keys".into()));
    assert_says(&grown(unfit), "a cannot be a member: it evicts keys");
    assert_says(&grown(holding("a")), "a holds lock \"deploy\"");
    assert_says(&grown(empty("a")), "a has lost its quorum record");
}

#[test]
fn change_refuses_unexpected_records() {
    let other = set_of(&["a", "x", "y"]);
    assert_says(
        &grown(member("a", &other, 1)),
        "a belongs to another quorum",
    );
    assert_says(&grown(member("a", &three(), 0)), "run `leasehold init`");
    let restarted = with(member("a", &three(), 1), |it| it.run = RunId::new("new"));
    assert_says(&grown(restarted), "a restarted");
    let set = three();
    let [a, b, c] = ["a", "b", "c"].map(|id| member(id, &set, 1));
    let taken = member("d", &set_of(&["d", "x", "y"]), 1);
    let error = growth([a, b, c, taken]).unwrap_err();
    assert_says(&error, "d already belongs to the quorum d,x,y");
}

#[test]
fn change_waits_for_leases_of_the_previous_one() {
    let changed = |answer, seconds: u64| {
        with(answer, |status| {
            let member_record = status.member_record.as_mut().unwrap();
            member_record.changed = WallTime::from_micros(NOW - seconds * 1_000_000);
        })
    };
    let error = grown(changed(member("a", &three(), 2), 60));
    assert_says(&error, "wait 1s more");
    // A member that was restored does not know whether the change before was long ago.
    assert_says(
        &error,
        "a got this quorum's record 1m ago, because the quorum was changed or the server had lost it",
    );
    let set = three();
    let [a, b, c] = ["a", "b", "c"].map(|id| changed(member(id, &set, 2), 61));
    growth([a, b, c, empty("d")]).expect("the leases are over");
    let [a, b, c] = ["a", "b", "c"].map(|id| changed(member(id, &set, 1), 0));
    growth([a, b, c, empty("d")]).expect("there was no change before");
}

#[test]
fn dismissal_is_for_members_of_the_old_quorum() {
    let (old, new) = (four(), three());
    let change = Change::new(&old, &new, &[]).unwrap();
    let edit = change
        .dismissal(member("d", &old, 3).status.unwrap())
        .unwrap();
    assert_eq!((edit.generation, &edit.set), (4, &new));
    assert!(
        change
            .dismissal(member("d", &new, 4).status.unwrap())
            .is_none()
    );
    assert!(change.dismissal(empty("d").status.unwrap()).is_none());
}

#[test]
fn readmission_needs_one_member_with_a_record() {
    let answers = [empty("a"), member("b", &three(), 3), silent("c")];
    let edit = readmit(&answers).unwrap().expect("a new record");
    assert_eq!((edit.generation, edit.age), (3, Some(Duration::ZERO)));
    assert_eq!(edit.seen.len(), 1);
    let error = readmit(&[empty("a"), empty("b"), silent("c")]).unwrap_err();
    assert_says(&error, "no member that answers has a record");
}

#[test]
fn readmission_leaves_a_record_alone() {
    let set = three();
    let answers = [member("a", &set, 1), member("b", &set, 1), silent("c")];
    assert_eq!(readmit(&answers).unwrap(), None);
}

#[test]
fn readmission_refuses_strangers_silence_and_contradictions() {
    let set = three();
    let error = check_member(&set, &MemberId::new("x")).unwrap_err();
    assert_says(&error, "x is not a member of this quorum: a,b,c");
    let error = readmit(&[silent("a"), member("b", &set, 1), silent("c")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    let other = member("c", &set_of(&["c", "x", "y"]), 2);
    let error = readmit(&[empty("a"), member("b", &set, 1), other]).unwrap_err();
    assert_says(&error, "the members contradict each other");
    assert_eq!(error.members()[0].id.as_str(), "c");
}

#[test]
fn replacement_needs_a_majority_of_the_others() {
    let set = three();
    let replace = |answers: &[MemberAnswer]| {
        replacement(&three(), &MemberId::new("a"), None, answers, &RandomEntropy)
    };
    let [b, c] = ["b", "c"].map(|id| member(id, &set, 2));
    let edit = replace(&[empty("a"), b.clone(), c.clone()]).unwrap();
    let edit = edit.expect("a first record");
    // The others do not know it yet.
    assert_eq!((edit.generation, edit.age), (0, Some(Duration::ZERO)));
    let error = replace(&[empty("a"), b.clone(), silent("c")]).unwrap_err();
    assert_says(&error, "1 of the other servers answer");
    let error = replace(&[holding("a"), b.clone(), c.clone()]).unwrap_err();
    assert_says(&error, "the new server of a holds lock \"deploy\"");
    assert_eq!(replace(&[member("a", &set, 2), b, c]).unwrap(), None);
}

/// Answers of the members of `set`, after they have seen a data generation of `a`.
fn having_seen(drawn: DataGeneration) -> [MemberAnswer; 2] {
    let seen = Observation {
        data_generation: drawn,
        at: WallTime::from_micros(NOW),
        changed: true,
    };
    ["b", "c"].map(|id| {
        with(member(id, &three(), 2), |status| {
            let record = status.member_record.as_mut().unwrap();
            record.observations.insert(MemberId::new("a"), seen);
        })
    })
}

#[test]
fn member_is_replaced_once() {
    let (set, id) = (three(), MemberId::new("a"));
    let former = member("a", &set, 2).status.unwrap();
    let own = former.member_record.as_ref().unwrap().data_generation;
    let later = DataGeneration::admitted([own], &RandomEntropy);
    let retired = retirement(&set, &id, former.clone()).unwrap();
    let mut told = former.clone();
    told.member_record.as_mut().unwrap().set = retired.set;
    for (former, seen) in [(&told, own), (&former, later)] {
        let replace = |new: MemberAnswer| {
            let [b, c] = having_seen(seen);
            replacement(&set, &id, Some(former), &[new, b, c], &RandomEntropy)
        };
        assert_says(
            &replace(empty("a")).unwrap_err(),
            "was moved to another server before",
        );
        // After an interruption the new server has its record.
        let begun = with(member("a", &set, 0), |status| {
            let record = status.member_record.as_mut().unwrap();
            record.data_generation = later;
        });
        replace(begun).expect("it goes on");
    }
}

#[test]
fn replaced_member_is_readmitted_on_request() {
    let set = three();
    let former = member("a", &set, 2);
    let own = former.member_record().unwrap().data_generation;
    let later = DataGeneration::admitted([own], &RandomEntropy);
    let [b, c] = having_seen(later);
    let edit = readmit(&[former, b, c]).unwrap().expect("a new record");
    assert!(edit.data_generation.was_admitted_after(later));
    assert_eq!(edit.generation, 0);
}

#[test]
fn member_is_not_replaced_again_with_the_old_list() {
    let (set, id) = (three(), MemberId::new("a"));
    let mut former = member("a", &set, 2).status.unwrap();
    let [b, c] = ["b", "c"].map(|id| member(id, &set, 2));
    let replace = |former: &MemberStatus, new: MemberAnswer| {
        let answers = [new, b.clone(), c.clone()];
        replacement(&set, &id, Some(former), &answers, &RandomEntropy)
    };
    assert!(replace(&former, empty("a")).unwrap().is_some());
    let retired = retirement(&set, &id, former.clone()).unwrap();
    former.member_record.as_mut().unwrap().set = retired.set;
    let error = replace(&former, empty("a")).unwrap_err();
    assert_says(&error, "was moved to another server before");
    // The same replacement may be repeated.
    assert_eq!(replace(&former, member("a", &set, 2)).unwrap(), None);
}

#[test]
fn replaced_server_is_in_a_quorum_of_its_own() {
    let (set, id) = (three(), MemberId::new("a"));
    let edit = retirement(&set, &id, member("a", &set, 2).status.unwrap()).unwrap();
    assert_eq!(
        (
            edit.set.to_string().contains("a (replaced)"),
            edit.generation
        ),
        (true, 3)
    );
    let retired = member("a", &edit.set, 3);
    assert!(retirement(&set, &id, retired.status.clone().unwrap()).is_none());
    let answers = [retired, member("b", &set, 2), member("c", &set, 2)];
    let reason = trust_of(&set, &answers)
        .may_ask(0.into())
        .unwrap_err()
        .to_string();
    assert!(reason.contains("belongs to another quorum"), "{reason}");
    assert!(trust_of(&set, &answers).may_ask(1.into()).is_ok());
}
