//! Those who keep others out of what they could share.

use leasehold::{Attempt, Departure, Fence, Key, Mode, RESERVATION, Renewal, Word};

use super::offers::{full, parties};
use super::party::{AT_ONCE, Party, SOON, Wish, busy, in_time, is_granted, line, until, waiters};
use super::scene::{LONG, Scene, held, inspection};

pub(crate) async fn m7_readers_behind_a_writer_that_leaves_are_called(scene: &Scene) {
    let parties = [(); 4].map(|()| Party::new(scene));
    let [holder, one, two, three] = &parties;
    let key = scene.key();
    let (holds, writer) = (holder.wants(&key, 0).shared(), one.wants(&key, 1));
    let (second, third) = (two.wants(&key, 2).shared(), three.wants(&key, 3).shared());
    let (last, late) = (one.wants(&key, 4), two.wants(&key, 5).shared());
    holds.is_granted().await;
    for waits in [&writer, &second, &third, &last, &late] {
        waits.is_refused().await;
    }
    writer.leaves().await;
    for called in [&second, &third] {
        called.has_turn().await;
        called.is_granted().await;
    }
    assert!(!late.words().contains(&Word::YourTurn));
    assert_eq!(line(holder, &key).await, waiters([&last, &late]));
}

pub(crate) async fn m7_a_reader_that_goes_ahead_calls_those_that_wait(scene: &Scene) {
    let parties = [(); 4].map(|()| Party::new(scene));
    let [holder, one, two, three] = &parties;
    let key = scene.key();
    let (holds, barges) = (holder.wants(&key, 0), three.wants(&key, 9).shared());
    let (first, writer) = (one.wants(&key, 1).shared(), two.wants(&key, 2));
    holds.is_granted().await;
    first.is_refused().await;
    writer.is_refused().await;
    let left = holds.depart(Departure::LeaveFree(LONG)).await;
    assert_eq!(left, leasehold::Release::Released);
    assert!(is_granted(&barges.barge().await));
    first.has_turn().await;
    first.is_granted().await;
    assert!(!writer.words().contains(&Word::YourTurn));
}

/// By the downgrade itself, or by the first of them that looks.
pub(crate) async fn m7_readers_that_wait_while_a_lock_becomes_shared_are_called(scene: &Scene) {
    let parties: Vec<Party<'_>> = (0..24).map(|_| Party::new(scene)).collect();
    let key = scene.key();
    let holds = parties[0].wants(&key, 0);
    let writer = parties[1].wants(&key, 98);
    let late = parties[2].wants(&key, 99).shared();
    let readers: Vec<Wish<'_>> = parties[1..]
        .iter()
        .zip(1..)
        .map(|(party, since)| party.wants(&key, since).shared())
        .collect();
    let fence = granted(holds.ask().await);
    for waits in readers.iter().chain([&writer, &late]) {
        waits.is_refused().await;
    }
    becomes_shared(&holds, fence).await;
    // Not the oldest.
    readers[4].is_granted().await;
    for called in readers.iter().filter(|it| it.ticket != readers[4].ticket) {
        called.has_turn().await;
        called.is_granted().await;
    }
    for waits in [&writer, &late] {
        assert!(!waits.words().contains(&Word::YourTurn));
    }
    assert_eq!(line(&parties[0], &key).await, waiters([&writer, &late]));
}

/// One that made its lock shared asks for it as a reader where it still stands as a writer.
pub(crate) async fn m7_a_waiter_has_one_place_in_whatever_mode_it_asks(scene: &Scene) {
    let parties = [(); 2].map(|()| Party::new(scene));
    let [holder, other] = &parties;
    let key = scene.key();
    let (holds, mut wish) = (holder.wants(&key, 0), other.wants(&key, 1));
    let fence = granted(holds.ask().await);
    for mode in [Mode::Exclusive, Mode::Shared, Mode::Exclusive, Mode::Shared] {
        wish.claim.mode = mode;
        wish.is_refused().await;
        assert_eq!(modes(holder, &key).await, [mode]);
        wish.depart(Departure::Requeue(wish.ticket)).await;
        assert_eq!(modes(holder, &key).await, [mode]);
    }
    wish.leaves().await;
    assert_eq!(line(holder, &key).await, []);

    wish.claim.mode = Mode::Exclusive;
    wish.is_refused().await;
    becomes_shared(&holds, fence).await;
    wish.claim.mode = Mode::Shared;
    // It does not keep itself out.
    wish.is_granted().await;
    assert_eq!(line(holder, &key).await, []);
}

fn granted(answer: Attempt) -> Fence {
    match answer {
        Attempt::Granted(grant) => grant.fence,
        Attempt::Busy(busy) => panic!("should be granted, and is {busy:?}"),
    }
}

/// Makes a lock shared that was taken alone.
async fn becomes_shared(holds: &Wish<'_>, fence: Fence) {
    let shared = holds.claim.clone().with_mode(Mode::Shared);
    let member = &holds.party.member;
    let renewed = member.renew(&[held(&shared, fence)]).await;
    assert!(matches!(renewed[..], [Renewal::Renewed]), "{renewed:?}");
}

/// How those want it who wait, in order.
async fn modes(party: &Party<'_>, key: &Key) -> Vec<Mode> {
    let waiters = inspection(&party.member)
        .waiters(key)
        .await
        .expect("an answer");
    waiters.iter().map(|waiter| waiter.mode).collect()
}

pub(crate) async fn m9_a_writer_that_does_not_show_itself_keeps_nobody_out(scene: &Scene) {
    let parties = [(); 4].map(|()| Party::new(scene));
    let [holder, silent, one, two] = &parties;
    let (refused, wishes) = in_time(scene, async |key| {
        let (holds, writer) = (holder.wants(&key, 0).shared(), silent.wants(&key, 1));
        let sibling = silent.wants(&key, 2);
        let (first, second) = (one.wants(&key, 3).shared(), two.wants(&key, 4).shared());
        holds.is_granted().await;
        writer.is_refused().await;
        sibling.is_refused().await;
        let refused = [first.ask().await, second.ask().await];
        (refused, [holds, writer, sibling, first, second])
    })
    .await;
    for (answer, place) in refused.into_iter().zip([3, 4]) {
        let refused = busy(answer);
        assert_eq!((refused.holder, refused.place), (None, Some(place)));
        assert!(refused.remaining.is_some_and(|it| it <= RESERVATION));
    }
    let [_, writer, sibling, first, second] = &wishes;
    writer.is_told(AT_ONCE).await;
    let granted = async || is_granted(&first.ask().await);
    until(scene, "the writer is late", granted).await;
    second.has_turn().await;
    second.is_granted().await;
    assert_eq!(writer.words(), [AT_ONCE], "it was told once");
    assert_eq!(sibling.words(), []);
    assert_eq!(line(holder, &writer.claim.key).await, []);
}

pub(crate) async fn m9_a_writer_that_shows_itself_keeps_its_place(scene: &Scene) {
    let parties = [(); 3].map(|()| Party::new(scene));
    let [holder, one, two] = &parties;
    let (told, wishes) = in_time(scene, async |key| {
        let (holds, writer) = (holder.wants(&key, 0).shared(), one.wants(&key, 1));
        let reader = two.wants(&key, 2).shared();
        holds.is_granted().await;
        writer.is_refused().await;
        for _ in 0..3 {
            reader.is_refused().await;
            writer.is_wanted().await;
            writer.is_refused().await;
        }
        (writer.words(), [holds, writer, reader])
    })
    .await;
    assert_eq!(told, [AT_ONCE], "not more than once a second");
    let [holds, writer, reader] = &wishes;
    let again = async || {
        writer.is_refused().await;
        reader.is_refused().await;
        writer.words().len() >= 3
    };
    until(scene, "it is told now and then", again).await;
    writer.is_refused().await;
    holds.hands_over().await;
    writer.has_turn().await;
    writer.is_granted().await;
}

pub(crate) async fn m11_who_wants_another_mode_and_does_not_show_itself_is_passed_over(
    scene: &Scene,
) {
    let Some(parties) = parties::<4>(scene).await else {
        return;
    };
    let [holder, silent, one, two] = &parties;
    for shared in [false, true] {
        let key = scene.key();
        let holds = full(holder, &key).await;
        let mut keeps_out = silent.wants(&key, 1);
        if shared {
            keeps_out = keeps_out.shared();
        }
        let (first, second) = (one.wants(&key, 2).permit(), two.wants(&key, 3).permit());
        for waits in [&keeps_out, &first, &second] {
            waits.is_refused().await;
        }
        holds[1].hands_over().await;
        keeps_out.is_told(AT_ONCE).await;
        first.is_told(SOON).await;
        let granted = async || is_granted(&first.ask().await);
        until(scene, "it is late", granted).await;
        assert_eq!(line(holder, &key).await, waiters([&second]));
        assert_eq!(keeps_out.words(), [AT_ONCE]);
    }
}
