//! Sets that are formed, mistaken for others and changed, with the real quorum over members in memory.

use std::time::Duration;

use leasehold::{Client, ErrorKind, LostReason, MemberId, MemoryStore, Quorum};
use leasehold_testkit::{Call, Fault, FaultyMember};

use crate::scene::{Scene, WAIT, client, quorum_of, take};

#[tokio::test(start_paused = true)]
async fn a_client_of_another_set_is_refused_with_both() {
    let scene = Scene::quorum(5);
    let fewer = client(
        quorum_of(&scene.members[..3], &scene.ambient),
        &scene.ambient,
    );
    let error = fewer.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let text = error.to_string();
    assert!(
        text.contains(
            "m0: belongs to another quorum (generation 1): it has m0,m1,m2,m3,m4, this client "
        ),
        "{text}"
    );
    assert!(text.contains("this client m0,m1,m2"), "{text}");
    let asked = |call: &Call| matches!(call, Call::Acquire(_));
    assert_eq!(
        scene.count(0, asked),
        0,
        "nothing is asked of members of others"
    );
    let limits = quorum_of(&scene.members, &scene.ambient).max_ttl(Duration::from_secs(30));
    let error = client(limits, &scene.ambient)
        .lock("x")
        .try_acquire()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}

#[tokio::test(start_paused = true)]
async fn who_was_refused_asks_again_whether_that_is_over() {
    let scene = Scene::quorum(3);
    let limits = quorum_of(&scene.members, &scene.ambient).max_ttl(Duration::from_secs(30));
    let other = client(limits, &scene.ambient);
    assert!(other.lock("x").try_acquire().await.is_err());
    for store in &scene.stores {
        store.forget_everything();
    }
    scene.pass(Duration::from_secs(1)).await;
    let guard = other.lock("x").ttl(Duration::from_secs(5)).acquire().await;
    assert!(guard.expect("its own set, after the wait").is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_client_of_one_or_two_members_of_a_set_is_refused_too() {
    let scene = Scene::quorum(3);
    for count in [1, 2] {
        let few = client(
            quorum_of(&scene.members[..count], &scene.ambient),
            &scene.ambient,
        );
        let error = few.lock("x").try_acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    // One that was there before the set was formed learns it by the answers.
    for store in &scene.stores {
        store.forget_everything();
    }
    let alone = client(
        quorum_of(&scene.members[..1], &scene.ambient),
        &scene.ambient,
    );
    take(&alone, "x").await;
    scene.store().init().await.unwrap();
    drop(alone.lock("x").try_acquire().await);
    scene.settle().await;
    let error = alone.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_set_is_formed_by_its_first_client_once_all_have_answered() {
    let scene = Scene::quorum(3);
    for store in &scene.stores {
        store.forget_everything();
    }
    let first = client(scene.store(), &scene.ambient);
    scene.members[2].set(Fault::Unreachable);
    let error = first.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    assert!(
        error
            .to_string()
            .contains("not initialized, because m2 did not answer"),
        "{error}"
    );
    scene.members[2].set(Fault::None);
    let error = first.lock("x").try_acquire().await.unwrap_err();
    assert!(
        error.counts_again().is_some(),
        "it may be one that was flushed: {error}"
    );
    scene.members[2].set(Fault::Unreachable);
    scene.pass(WAIT).await;
    take(&scene.other_client(), "x").await;
}

#[tokio::test(start_paused = true)]
async fn members_that_cannot_have_forgotten_form_a_set_that_counts_at_once() {
    let scene = Scene::quorum(3);
    let names = ["a", "b", "c"];
    let new = names.map(|id| MemoryStore::member(id, scene.ambient.clone()));
    let faulty = new.map(|store| FaultyMember::new(store, scene.ambient.clone()));
    take(
        &client(quorum_of(&faulty, &scene.ambient), &scene.ambient),
        "x",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn init_is_for_members_that_answer_and_hold_nothing() {
    let scene = Scene::quorum(3);
    let error = scene.store().init().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(
        error.to_string(),
        "the quorum is already initialized; nothing to do"
    );

    scene.stores[2].forget_everything();
    let error = scene.store().init().await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("nothing was written; m0: already belongs to the quorum "),
        "{text}"
    );
    assert_eq!(error.members().len(), 2, "all that is in the way: {text}");

    for store in &scene.stores {
        store.forget_everything();
    }
    scene.members[1].set(Fault::Unreachable);
    assert_eq!(
        scene.store().init().await.unwrap_err().kind(),
        ErrorKind::Unreachable
    );
    scene.members[1].set(Fault::None);

    let alone = Client::builder(scene.stores[2].clone()).ambient(scene.ambient.clone());
    let alone = alone.on_current_runtime().build();
    let guard = alone.lock("mine").acquire().await.unwrap();
    let error = scene.store().init().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"nothing was written; m2: it holds lock "mine"; wait until it is released"#
    );
    guard.release().await.unwrap();
    scene.store().init().await.unwrap();
    take(&scene.other_client(), "x").await;
}

#[tokio::test(start_paused = true)]
async fn a_set_grows_one_member_at_a_time_and_old_clients_are_refused() {
    let scene = Scene::quorum(3);
    let newcomer = |n: usize| {
        let store = MemoryStore::member(format!("m{n}"), scene.ambient.clone());
        FaultyMember::new(store, scene.ambient.clone())
    };
    let mut members = scene.members.clone();
    members.extend([newcomer(3), newcomer(4)]);
    let quorum = |count: usize| quorum_of(&members[..count], &scene.ambient);
    let guard = scene.client.lock("x").acquire().await.unwrap();

    let error = quorum(5).succeed(&quorum(3)).await.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("2 servers would join and 0 leave; change one server at a time"),
        "{error}"
    );
    quorum(4).succeed(&quorum(3)).await.unwrap();
    quorum(4)
        .succeed(&quorum(3))
        .await
        .expect("it can be repeated");

    // A client of the new set meets the old holder's lease in every majority.
    let new = client(quorum(4), &scene.ambient);
    assert!(new.lock("x").try_acquire().await.unwrap().is_none());
    let error = scene.client.lock("y").try_acquire().await.unwrap_err();
    let refused = |error: &leasehold::Error| error.to_string().contains("generation 2");
    scene.settle().await;
    let again = scene.client.lock("y").try_acquire().await.unwrap_err();
    assert!(refused(&error) || refused(&again), "{error}, {again}");
    assert_eq!(guard.lost().await, LostReason::Unreachable);

    let error = quorum(5).succeed(&quorum(4)).await.unwrap_err();
    assert!(error.to_string().contains("changed recently"), "{error}");
    scene.pass(WAIT).await;
    quorum(5).succeed(&quorum(4)).await.unwrap();
    let new = client(quorum(5), &scene.ambient);
    take(&new, "x").await;

    // One is replaced: first it leaves, and is told; later another one joins.
    scene.pass(WAIT).await;
    let four = quorum_of(&members[1..], &scene.ambient);
    four.succeed(&quorum(5)).await.unwrap();
    take(&client(four, &scene.ambient), "x").await;
    let error = new.lock("x").try_acquire().await;
    assert!(error.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_change_is_refused_that_cannot_be_carried_out_whole() {
    let scene = Scene::quorum(3);
    let two: Quorum = quorum_of(&scene.members[..2], &scene.ambient);
    let error = two.succeed(&scene.store()).await.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("refused: 2 servers could not survive one failure"),
        "{error}"
    );

    let joining = MemoryStore::member("m3", scene.ambient.clone());
    let members = [
        &scene.members[..],
        &[FaultyMember::new(joining, scene.ambient.clone())],
    ]
    .concat();
    let four = || quorum_of(&members, &scene.ambient);
    scene.members[0].set(Fault::Unreachable);
    let error = four().succeed(&scene.store()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    scene.members[0].set(Fault::None);
    scene.stores[0].restart(true);
    let error = four().succeed(&scene.store()).await.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("m0 restarted; let a client acquire a lock"),
        "{error}"
    );
    let slower = four().max_ttl(Duration::from_secs(50));
    let error = slower.succeed(&scene.store()).await.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("a change of members cannot change the limits"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_old_copy_of_a_member_brings_no_set_back_beside_another() {
    let scene = Scene::quorum(3);
    take(&scene.client, "x").await;
    let copy = scene.stores[1].snapshot();
    for store in &scene.stores[..2] {
        store.forget_everything();
    }
    // Somebody who was given another list is the first to find them empty.
    let fourth = MemoryStore::member("m3", scene.ambient.clone());
    let fourth = FaultyMember::new(fourth, scene.ambient.clone());
    let theirs = [&scene.members[..2], &[fourth]].concat();
    let theirs = client(quorum_of(&theirs, &scene.ambient), &scene.ambient);
    assert!(theirs.lock("x").try_acquire().await.is_err());
    scene.pass(WAIT).await;
    let guard = theirs.lock("x").acquire().await.expect("their set stands");

    scene.stores[1].restart_from(&copy);
    for client in [&scene.client, &scene.other_client()] {
        let at_once = client.lock("x").try_acquire().await;
        assert!(!matches!(at_once, Ok(Some(_))), "their lock is held");
        scene.pass(WAIT).await;
        let error = client.lock("x").try_acquire().await.unwrap_err();
        let text = error.to_string();
        let claim = "m1: belongs to another quorum according to m0 (generation 1): it has m0,m1,m3, this client ";
        assert!(text.contains(claim), "{text}");
    }
    // They cannot know either who is right.
    assert_eq!(guard.lost().await, LostReason::Unreachable);
    let error = theirs.lock("x").try_acquire().await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("m0: belongs to another quorum according to m1"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn one_old_record_does_not_revive_its_quorum() {
    let scene = Scene::quorum(3);
    take(&scene.client, "x").await;
    let copy = scene.stores[1].snapshot();
    for store in &scene.stores {
        store.forget_everything();
    }
    // A client with another list initializes its own quorum on two of the servers and a fourth.
    let fourth = MemoryStore::member("m3", scene.ambient.clone());
    let stores = [&scene.stores[1], &scene.stores[2], &fourth];
    let members = stores.map(|store| FaultyMember::new(store.clone(), scene.ambient.clone()));
    let theirs = quorum_of(&members, &scene.ambient);
    theirs.init().await.unwrap();
    let theirs = client(theirs, &scene.ambient);
    let guard = theirs.lock("x").acquire().await.unwrap();

    // Each client reaches only one of the two servers that contradict each other.
    scene.stores[1].restart_from(&copy);
    members[0].set(Fault::Unreachable);
    scene.members[2].set(Fault::Unreachable);
    let ours = client(scene.store(), &scene.ambient);
    for _ in 0..2 {
        let answer = ours.lock("x").try_acquire().await;
        assert!(!matches!(answer, Ok(Some(_))), "their lock is held");
        assert!(guard.is_valid(), "{:?}", guard.state());
        scene.pass(WAIT).await;
    }
    let error = ours.lock("x").try_acquire().await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("m0: lost its data"), "{text}");
    scene.members[2].set(Fault::None);
    scene.pass(WAIT).await;
    let error = ours.lock("x").try_acquire().await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("m2: belongs to another quorum"), "{text}");
    assert!(guard.is_valid());
}

#[tokio::test(start_paused = true)]
async fn readmitted_member_has_a_vote_after_the_wait() {
    let scene = Scene::quorum(3);
    scene.stores[1].forget_everything();
    scene.members[2].set(Fault::Unreachable);
    let id = |n: usize| MemberId::new(format!("m{n}"));
    let quorum = scene.store();
    assert!(!quorum.readmit(&id(0)).await.unwrap(), "it has a record");
    let error = quorum.readmit(&id(2)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(quorum.readmit(&id(1)).await.unwrap());
    assert!(!quorum.readmit(&id(1)).await.unwrap());

    let client = client(scene.store(), &scene.ambient);
    let error = client.lock("x").try_acquire().await.unwrap_err();
    assert!(error.counts_again().is_some_and(|it| it <= WAIT), "{error}");
    scene.pass(WAIT).await;
    take(&client, "x").await;
}

#[tokio::test(start_paused = true)]
async fn readmission_against_the_evidence_is_refused() {
    let scene = Scene::quorum(3);
    let id = |n: usize| MemberId::new(format!("m{n}"));
    let refused = async |member: usize, reason: &str| {
        let error = scene.store().readmit(&id(member)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        let text = error.to_string();
        assert!(text.contains(reason), "{text}");
    };
    refused(7, "m7 is not a member of this quorum").await;
    for store in &scene.stores[1..] {
        store.forget_everything();
    }
    let fourth = MemoryStore::member("m3", scene.ambient.clone());
    let stores = [
        &scene.stores[2],
        &fourth,
        &MemoryStore::member("m4", scene.ambient.clone()),
    ];
    let members = stores.map(|store| FaultyMember::new(store.clone(), scene.ambient.clone()));
    quorum_of(&members, &scene.ambient).init().await.unwrap();
    refused(1, "m2: belongs to another quorum").await;
    scene.members[2].set(Fault::Unreachable);
    scene.stores[0].forget_everything();
    refused(1, "no member that answers has a record").await;
}
