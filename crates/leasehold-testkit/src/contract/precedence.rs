use leasehold::{Attempt, ErrorKind, Turn, Word};

use super::offers::{full, parties};
use super::party::{busy, in_time, is_granted, line, until, waiters};
use super::permits::slots;
use super::scene::{Scene, short_ttl};

pub(crate) async fn m11_nobody_overtakes_a_waiter_of_another_mode(scene: &Scene) {
    let Some(parties) = parties::<4>(scene).await else {
        return;
    };
    let [holder, one, two, three] = &parties;
    let key = scene.key();
    let holds = full(holder, &key).await;
    let first = one.wants(&key, 1).permit();
    let (writer, late) = (two.wants(&key, 2), three.wants(&key, 3).permit());
    for waits in [&first, &writer, &late] {
        waits.is_refused().await;
    }
    for holds in &holds[..2] {
        holds.hands_over().await;
    }
    first.is_granted().await;
    let refused = late.is_refused().await;
    assert_eq!(refused.place, Some(2));
    assert!(refused.free.is_empty(), "{refused:?}");
    let plain = three.wants(&key, 9).permit().try_once().await;
    assert!(busy(plain).free.is_empty());
    holds[2].hands_over().await;
    writer.is_wanted().await;
    writer.is_refused().await;
    first.hands_over().await;
    writer.has_turn().await;
    writer.is_granted().await;
    assert_eq!(line(holder, &key).await, waiters([&late]));
    writer.hands_over().await;
    late.is_granted().await;
}

pub(crate) async fn m11_no_reader_overtakes_one_that_waits_for_a_permit(scene: &Scene) {
    let Some(parties) = parties::<2>(scene).await else {
        return;
    };
    let [one, two] = &parties;
    let key = scene.key();
    let reads = one.wants(&key, 0).shared();
    let (waits, late) = (two.wants(&key, 1).permit(), one.wants(&key, 2).shared());
    reads.is_granted().await;
    waits.is_refused().await;
    assert_eq!(late.is_refused().await.place, Some(2));
    reads.hands_over().await;
    waits.is_granted().await;
    waits.hands_over().await;
    late.is_granted().await;
}

pub(crate) async fn m11_barging_takes_any_and_who_does_not_wait_what_nobody_waits_for(
    scene: &Scene,
) {
    let Some(parties) = parties::<4>(scene).await else {
        return;
    };
    let [holder, one, two, three] = &parties;
    let (answers, wishes) = in_time(scene, async |key| {
        let holds = full(holder, &key).await;
        let waits = one.wants(&key, 1).permit();
        waits.is_refused().await;
        holds[1].hands_over().await;
        let (plain, barges) = (two.wants(&key, 2).permit(), three.wants(&key, 3).permit());
        let answers = [plain.try_once().await, barges.barge().await];
        (answers, [waits, plain, barges])
    })
    .await;
    let [plain, barged] = answers;
    assert!(busy(plain).free.is_empty());
    assert!(is_granted(&barged), "{barged:?}");
    let [waits, plain, barges] = wishes;
    assert_eq!(line(holder, &waits.claim.key).await, waiters([&waits]));
    assert!(busy(plain.barge().await).free.is_empty());
    barges.hands_over().await;
    waits.is_granted().await;
    waits.hands_over().await;
    let taken = two.wants(&waits.claim.key, 4).permit().of_slot(0);
    let refused = busy(taken.try_once().await);
    assert_eq!(refused.free, slots(&[1]));
    assert!(matches!(plain.try_once().await, Attempt::Granted(_)));
}

pub(crate) async fn m12_another_number_is_refused_and_queued_nowhere(scene: &Scene) {
    let Some(parties) = parties::<3>(scene).await else {
        return;
    };
    let [holder, one, two] = &parties;
    let key = scene.key();
    let holds = holder.wants(&key, 0);
    holds.is_granted().await;
    // Who waits since the time before is not refused while another mode is held.
    let (first, other) = (one.wants(&key, 1).permit(), one.wants(&key, 2).permit_of(2));
    let behind = two.wants(&key, 3).permit();
    for waits in [&first, &other, &behind] {
        waits.is_refused().await;
    }
    holds.hands_over().await;
    first.is_granted().await;
    behind.has_turn().await;
    behind.is_granted().await;
    other.leaves().await;
    for turn in [Turn::Queued(other.ticket), Turn::Barging] {
        let error = one.member.acquire_in_turn(&other.claim, &turn).await;
        let error = error.expect_err("a refusal");
        assert_eq!(error.kind(), ErrorKind::PermitsDiffer, "{error}");
    }
    assert_eq!(line(holder, &key).await, []);
}

pub(crate) async fn m11_who_asks_is_not_told_to_stand_in(scene: &Scene) {
    let Some(parties) = parties::<3>(scene).await else {
        return;
    };
    let [holder, one, two] = &parties;
    let key = scene.key();
    let [stays, mut ends] = [0, 1].map(|slot| holder.wants(&key, 0).permit_of(2).of_slot(slot));
    ends.claim.ttl = short_ttl(&scene.open());
    for holds in [&stays, &ends] {
        holds.is_granted().await;
    }
    let (first, asks) = (
        one.wants(&key, 1).permit_of(2),
        two.wants(&key, 2).permit_of(2),
    );
    first.is_refused().await;
    let told = async || {
        asks.is_refused().await;
        first.words().contains(&Word::YourTurn)
    };
    until(scene, "a lease ends", told).await;
    assert_eq!(asks.words(), []);
}
