use std::sync::Arc;
use std::time::Duration;

use leasehold::{Attempt, Fence, Incarnation, Key, Member, MemberId, Renewal, Seal};

use super::scene::{LONG, Scene, edit, held, present};

/// The one incarnation that `member` shows with its answers of every kind.
async fn shown(scene: &Scene, member: &Arc<dyn Member>) -> Incarnation {
    let before = scene.wall();
    let key: Key = scene.key();
    let (holder, other) = (scene.claim(&key, LONG), scene.claim(&key, LONG));
    let reader = scene.shared(&scene.key(), LONG);
    let mut samples = Vec::new();
    for claim in [&holder, &reader] {
        let Ok(Attempt::Granted(grant)) = member.acquire(claim).await else {
            panic!("{} should be granted", claim.key)
        };
        samples.push(grant.sample.clone().expect("a sample beside a grant"));
        let next = Fence::new(grant.fence.get() + 1).expect("a fence");
        let sealed = member.seal(claim, next).await.expect("an answer");
        assert_eq!(sealed.answer, Seal::Sealed);
        samples.push(sealed.sample);
        let leases = [held(claim, grant.fence)];
        let renewed = member.renew_sampled(&leases).await.expect("an answer");
        assert!(matches!(renewed.answer[..], [Renewal::Renewed]));
        samples.push(renewed.sample);
    }
    let Ok(Attempt::Busy(busy)) = member.acquire(&other).await else {
        panic!("{key} should be busy")
    };
    samples.push(busy.sample.expect("a sample beside busy"));
    let renewed = member.renew_sampled(&[]).await.expect("an answer");
    assert!(renewed.answer.is_empty());
    samples.push(renewed.sample);
    for claim in [&holder, &reader] {
        member.release(claim).await.expect("an answer");
    }
    let presence = member.presence().await.expect("an answer");
    let (incarnation, after) = (presence.incarnation(), scene.wall());
    // The clocks of one machine: coarse, since a clock may be set while a test runs.
    let span = after.distance(before) + Duration::from_secs(60);
    for sample in samples {
        assert_eq!(sample.incarnation, incarnation);
        assert!(sample.clock.distance(before) < span);
    }
    incarnation
}

pub(crate) async fn m3_every_answer_shows_the_incarnation_of_its_data(scene: &Scene) {
    let own = scene.alone();
    let member = own.member();
    let blank = shown(scene, &member).await;
    assert_eq!(shown(scene, &member).await, blank);

    let first = edit(&present(&member).await, scene.life());
    assert!(member.write_card(&first).await.expect("an answer"));
    let written = shown(scene, &member).await;

    let mut same = edit(&present(&member).await, first.life);
    (same.durable, same.age) = (true, None);
    same.seen = vec![(MemberId::new("other"), scene.life())];
    assert!(member.write_card(&same).await.expect("an answer"));
    let seen = [(MemberId::new("other"), scene.life())];
    member.witness(&seen).await.expect("an answer");
    let unchanged = shown(scene, &member).await;
    assert_eq!(
        unchanged, written,
        "neither the life nor the set was written anew"
    );

    let mut other_set = edit(&present(&member).await, first.life);
    other_set.generation = 2;
    assert!(member.write_card(&other_set).await.expect("an answer"));
    let regenerated = shown(scene, &member).await;

    let mut other_life = edit(&present(&member).await, scene.life());
    other_life.generation = 2;
    assert!(member.write_card(&other_life).await.expect("an answer"));
    let reborn = shown(scene, &member).await;

    own.forget_everything();
    let forgotten = shown(scene, &member).await;
    let again = edit(&present(&member).await, scene.life());
    assert!(member.write_card(&again).await.expect("an answer"));
    let anew = shown(scene, &member).await;

    let all = [&written, &regenerated, &reborn, &forgotten, &anew];
    for (number, one) in all.iter().enumerate() {
        assert!(!all[..number].contains(one), "{one:?} came back");
    }
}

pub(crate) async fn m3_a_restart_changes_the_incarnation(scene: &Scene) {
    let own = scene.alone();
    let member = own.member();
    let written = edit(&present(&member).await, scene.life());
    assert!(member.write_card(&written).await.expect("an answer"));
    let before = shown(scene, &member).await;
    let run = present(&member).await.run;
    own.restart();
    let presence = present(&member).await;
    assert_ne!(presence.run, run);
    assert_ne!(presence.incarnation(), before);
    assert_eq!(shown(scene, &member).await, presence.incarnation());
}
