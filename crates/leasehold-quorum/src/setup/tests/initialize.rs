//! How an operator initializes a quorum.

use super::*;

/// The records that an operator writes next who initializes the quorum, each with the position of its member.
fn initialized(
    answers: &[MemberAnswer],
    past: Past,
) -> Result<Vec<(usize, MemberRecordEdit)>, Error> {
    let steps = initialization(&three(), answers, past, &RandomEntropy)?;
    let write = |step| match step {
        RecordStep::Write(member, edit) => (usize::from(member), edit),
        other => panic!("not a record: {other:?}"),
    };
    Ok(steps.into_iter().map(write).collect())
}

fn first(answers: &[MemberAnswer]) -> Result<Vec<(usize, MemberRecordEdit)>, Error> {
    initialized(answers, Past::Unknown)
}

#[test]
fn initialization_gives_each_member_a_record() {
    let edits = first(&["a", "b", "c"].map(empty)).unwrap();
    assert_eq!(edits.len(), 3);
    for (_, edit) in &edits {
        assert_eq!((edit.generation, edit.expected.as_ref()), (0, None));
        assert_eq!((edit.age, edit.seen.len()), (Some(Duration::MAX), 2));
    }
}

/// The answers after each member got a first record.
fn begun() -> [MemberAnswer; 3] {
    let set = three();
    let mut answers = ["a", "b", "c"].map(|id| member(id, &set, 0));
    let names = answers.clone();
    for answer in &mut answers {
        let status = answer.status.as_mut().unwrap();
        let record = status.member_record.as_mut().unwrap();
        for other in names.iter().filter(|other| other.id != answer.id) {
            let drawn = other.member_record().unwrap().data_generation;
            let seen = Observation::noted(None, drawn, WallTime::from_micros(NOW)).unwrap();
            record.observations.insert(other.id.clone(), seen);
        }
    }
    answers
}

#[test]
fn each_first_record_is_confirmed() {
    let edits = first(&begun()).unwrap();
    let written = edits.iter().map(|(at, edit)| (*at, edit.generation));
    assert_eq!(Vec::from_iter(written), [(0, 1), (1, 1), (2, 1)]);
    let [_, b, c] = begun();
    let error = first(&[silent("a"), b.clone(), c.clone()]).unwrap_err();
    assert_says(&error, "no answer");
    let unfit = with(begun()[0].clone(), |it| {
        it.unfit = Some("it evicts keys".into());
    });
    let error = first(&[unfit, b, c]).unwrap_err();
    assert_says(&error, "it evicts keys");
}

#[test]
fn initialization_that_stopped_halfway_goes_on() {
    let [a, b, c] = begun();
    let one_is_confirmed = with(a.clone(), |status| {
        status.member_record.as_mut().unwrap().generation = 1;
    });
    let edits = first(&[one_is_confirmed.clone(), b, c.clone()]).unwrap();
    assert_eq!(edits.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1, 2]);
    let edits = first(&[a, empty("b"), c.clone()]).unwrap();
    assert_eq!(edits.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1]);
    // The server of b may have lost the locks that it granted.
    let error = first(&[one_is_confirmed, empty("b"), c]).unwrap_err();
    assert_says(&error.members()[0].error, "already belongs to the quorum");
}

/// A member of a quorum that a client initialized this many seconds ago.
fn formed(id: &str, seconds: u64, was_used: bool) -> MemberAnswer {
    let mut answer = with(member(id, &three(), 1), |status| {
        let record = status.member_record.as_mut().unwrap();
        record.since = WallTime::from_micros(NOW - seconds * 1_000_000);
    });
    answer.was_used = Ok(was_used);
    answer
}

#[test]
fn operator_states_that_members_were_new() {
    let unused = ["a", "b", "c"].map(|id| formed(id, 600, false));
    let edits = initialized(&unused, Past::Unknown).unwrap();
    let written: Vec<_> = edits.iter().map(|(at, edit)| (*at, edit.age)).collect();
    assert_eq!(written, [0, 1, 2].map(|at| (at, Some(Duration::MAX))));
    assert!(is_initialized(&three(), &unused));
    let old = ["a", "b", "c"].map(|id| member(id, &three(), 1));
    assert_eq!(initialized(&old, Past::New).unwrap(), []);
}

#[test]
fn granted_locks_need_the_operators_statement() {
    let used = ["a", "b", "c"].map(|id| formed(id, 600, true));
    let error = initialized(&used, Past::Unknown).unwrap_err();
    assert_eq!(error.members().len(), 3);
    assert_says(&error.members()[0].error, "leasehold init --new");
    assert_eq!(initialized(&used, Past::New).unwrap().len(), 3);
    // No member had a vote yet, so the counters are from attempts that were not granted.
    let recent = ["a", "b", "c"].map(|id| formed(id, 60, true));
    let edits = initialized(&recent, Past::Unknown).unwrap();
    assert_eq!(edits.len(), 3);
}

#[test]
fn member_that_lost_its_data_is_not_new() {
    let [mut a, b, c] = ["a", "b", "c"].map(|id| formed(id, 600, false));
    let observation = Observation {
        data_generation: b.member_record().unwrap().data_generation,
        at: WallTime::from_micros(NOW),
        changed: true,
    };
    let record = a.status.as_mut().unwrap().member_record.as_mut().unwrap();
    record.observations.insert(b.id.clone(), observation);
    let restarted = with(c, |status| status.run = RunId::new("another run"));
    let edits = initialized(&[a, b, restarted], Past::New).unwrap();
    let positions: Vec<_> = edits.iter().map(|(position, _)| *position).collect();
    assert_eq!(positions, [0]);
    let joined = ["a", "b", "c"].map(|id| {
        with(formed(id, 600, false), |status| {
            status.member_record.as_mut().unwrap().generation = 2;
        })
    });
    assert_eq!(initialized(&joined, Past::New).unwrap(), []);
}

#[test]
fn initialization_names_each_obstacle() {
    let other = set_of(&["b", "x", "y"]);
    let answers = [silent("a"), member("b", &other, 2), holding("c")];
    let error = first(&answers).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_says(&error, "nothing was written");
    let told: Vec<String> = error.members().iter().map(ToString::to_string).collect();
    assert!(told[0].contains("no answer"), "{told:?}");
    assert!(
        told[1].contains("already belongs to the quorum b,x,y"),
        "{told:?}"
    );
    assert!(told[2].contains("holds lock \"deploy\""), "{told:?}");
}

#[test]
fn initialization_refuses_unfit_and_twice_listed_servers() {
    let unfit = with(empty("a"), |it| it.unfit = Some("it evicts keys".into()));
    let error = first(&[unfit, empty("b"), empty("c")]).unwrap_err();
    assert_says(&error.members()[0].error, "it evicts keys");
    let copy = with(empty("b"), |it| it.run = RunId::new("run of a"));
    let error = first(&[empty("a"), copy, empty("c")]).unwrap_err();
    assert_eq!(error.members().len(), 2);
}

#[test]
fn initialization_keeps_the_kind_of_an_outage() {
    let error = first(&[silent("a"), empty("b"), empty("c")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
}
