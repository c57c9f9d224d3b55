use std::time::Duration;

use leasehold::{Departure, Heard, Release, Store, Word};

use super::party::{AT_ONCE, Party, SOON, in_time, is_granted, line, until, waiters};
use super::scene::{LONG, Scene};

pub(crate) async fn m8_the_first_is_told_that_it_is_its_turn_and_the_next_that_it_is_next(
    scene: &Scene,
) {
    let parties = [(); 4].map(|()| Party::new(scene));
    let [holder, one, two, three] = &parties;
    for by_release in [false, true] {
        let key = scene.key();
        let (holds, first) = (holder.wants(&key, 0), one.wants(&key, 1));
        // Of the same client as the first: were that one dead, so would be this one.
        let second = one.wants(&key, 2);
        let (third, fourth) = (two.wants(&key, 3), three.wants(&key, 4));
        holds.is_granted().await;
        for waits in [&fourth, &third, &second, &first] {
            waits.is_refused().await;
        }
        if by_release {
            let member: &dyn Store = &*holder.member;
            let released = member.release(&holds.claim).await;
            assert_eq!(released.expect("an answer"), Release::Released);
        } else {
            holds.hands_over().await;
        }
        first.is_told(Word::YourTurn).await;
        third.is_told(SOON).await;
        assert_eq!((second.words(), fourth.words()), (vec![], vec![]));
        assert_eq!(holds.depart(Departure::HandOver).await, Release::WasLost);
        first.is_granted().await;
        assert_eq!(
            line(holder, &key).await,
            waiters([&second, &third, &fourth])
        );
    }
}

pub(crate) async fn m8_who_does_not_hear_is_dropped(scene: &Scene) {
    /// A connection ends when its server notices: many releases, one of which is late enough.
    const RELEASES: u32 = 20;
    let (holder, gone, stays) = (Party::new(scene), Party::new(scene), Party::new(scene));
    let keys: Vec<_> = (0..RELEASES).map(|_| scene.key()).collect();
    let mut pairs = Vec::new();
    for key in &keys {
        let (holds, waits) = (holder.wants(key, 0), stays.wants(key, 2));
        holds.is_granted().await;
        gone.wants(key, 1).is_refused().await;
        waits.is_refused().await;
        pairs.push((holds, waits));
    }
    drop(gone);
    for (holds, waits) in &pairs {
        holds.hands_over().await;
        let told = async || !waits.words().is_empty();
        until(scene, "one of the two is told", told).await;
        for _ in 0..10 {
            // It may have been told to stand in before it showed that the other one is gone.
            if waits.words().last() == Some(&Word::YourTurn) {
                waits.is_granted().await;
                assert_eq!(line(&holder, &waits.claim.key).await, []);
                return;
            }
            scene.pause().await;
        }
    }
    panic!("one that is gone was told that it is its turn {RELEASES} times");
}

pub(crate) async fn m8_what_is_reserved_for_one_that_leaves_is_handed_on(scene: &Scene) {
    let parties = [(); 4].map(|()| Party::new(scene));
    let [holder, one, two, three] = &parties;
    let wishes = in_time(scene, async |key| {
        let holds = holder.wants(&key, 0);
        let waiting = [one.wants(&key, 1), two.wants(&key, 2), three.wants(&key, 3)];
        holds.is_granted().await;
        for waits in &waiting {
            waits.is_refused().await;
        }
        holds.hands_over().await;
        waiting[0].leaves().await;
        waiting
    })
    .await;
    let [first, second, third] = &wishes;
    let both = async || second.words().len() == 2;
    until(scene, "it is next, and then it is its turn", both).await;
    assert_eq!(second.words(), [SOON, Word::YourTurn]);
    third.is_told(SOON).await;
    second.is_granted().await;
    assert_eq!(line(holder, &first.claim.key).await, waiters([third]));
}

pub(crate) async fn m8_who_moves_to_the_front_is_told_when_to_try(scene: &Scene) {
    let parties = [(); 4].map(|()| Party::new(scene));
    let [holder, one, two, three] = &parties;
    let key = scene.key();
    let holds = holder.wants(&key, 0);
    let (first, second, third) = (one.wants(&key, 1), two.wants(&key, 2), three.wants(&key, 3));
    holds.is_granted().await;
    for waits in [&first, &second, &third] {
        waits.is_refused().await;
    }
    first.leaves().await;
    for moved in [&second, &third] {
        let told = async || !moved.words().is_empty();
        until(scene, "it is told", told).await;
        let words = moved.words();
        assert!(
            matches!(words[..], [Word::Soon { remaining }] if remaining <= LONG && remaining > LONG / 2),
            "{words:?}"
        );
    }
    assert_eq!(line(holder, &key).await, waiters([&second, &third]));
    assert_eq!(first.words(), []);
}

pub(crate) async fn m8_a_lock_that_is_left_free_is_for_those_who_poll(scene: &Scene) {
    const SPAN: Duration = Duration::from_secs(20);
    let parties = [(); 4].map(|()| Party::new(scene));
    let [holder, one, two, polls] = &parties;
    let (refused, plain, wishes) = in_time(scene, async |key| {
        let (holds, polled) = (holder.wants(&key, 0), polls.wants(&key, 9));
        let (first, second) = (one.wants(&key, 1), two.wants(&key, 2));
        holds.is_granted().await;
        first.is_refused().await;
        second.is_refused().await;
        let left = holds.depart(Departure::LeaveFree(SPAN)).await;
        assert_eq!(left, Release::Released);
        let refused = first.is_refused().await;
        (refused, polled.try_once().await, [first, second])
    })
    .await;
    let [first, second] = &wishes;
    assert_eq!((refused.holder, refused.place), (None, Some(1)));
    let remaining = refused.remaining.expect("the rest of the span");
    assert!(remaining <= SPAN && remaining > SPAN / 2, "{remaining:?}");
    assert!(is_granted(&plain), "{plain:?}");
    first.is_told(Word::Soon { remaining: SPAN }).await;
    // It belongs to another client: the first may be dead.
    second.is_told(Word::Soon { remaining: SPAN }).await;
    assert_eq!(
        line(holder, &first.claim.key).await,
        waiters([first, second])
    );
}

pub(crate) async fn m8_a_waiter_whose_attempt_failed_is_put_back(scene: &Scene) {
    let (one, two) = (Party::new(scene), Party::new(scene));
    let key = scene.key();
    let (failed, younger) = (one.wants(&key, 1), two.wants(&key, 2));
    failed.is_granted().await;
    younger.is_refused().await;
    let back = Departure::Requeue(failed.ticket);
    assert_eq!(failed.depart(back).await, Release::Released);
    failed.is_told(Word::YourTurn).await;
    younger.is_told(SOON).await;
    failed.is_granted().await;

    // Where it did not hold, it is only queued.
    let also = one.wants(&key, 3);
    assert_eq!(
        also.depart(Departure::Requeue(also.ticket)).await,
        Release::WasLost
    );
    assert_eq!(line(&one, &key).await, waiters([&younger, &also]));
    assert_eq!(also.words(), []);
    failed.is_granted().await;

    // Where the lock is simply free, it is handed over.
    let key = scene.key();
    let alone = one.wants(&key, 1);
    assert_eq!(
        alone.depart(Departure::Requeue(alone.ticket)).await,
        Release::WasLost
    );
    alone.is_told(Word::YourTurn).await;
    alone.is_granted().await;
    assert_eq!(line(&one, &key).await, []);
}

pub(crate) async fn m8_the_first_reader_calls_those_behind_it(scene: &Scene) {
    let parties = [(); 4].map(|()| Party::new(scene));
    let [holder, one, two, three] = &parties;
    let key = scene.key();
    let (holds, first) = (holder.wants(&key, 0), one.wants(&key, 1).shared());
    let (second, third) = (two.wants(&key, 2).shared(), three.wants(&key, 3).shared());
    let (writer, late) = (one.wants(&key, 4), two.wants(&key, 5).shared());
    holds.is_granted().await;
    for waits in [&first, &second, &third, &writer, &late] {
        waits.is_refused().await;
    }
    holds.hands_over().await;
    first.is_granted().await;
    for called in [&second, &third] {
        let turn = async || called.words().contains(&Word::YourTurn);
        until(scene, "readers are called", turn).await;
        called.is_granted().await;
    }
    // It keeps a reader out, who is to look should it not come.
    writer.is_told(AT_ONCE).await;
    late.is_told(SOON).await;
    assert_eq!(line(holder, &key).await, waiters([&writer, &late]));
    writer.is_refused().await;
    for reader in [&first, &second] {
        reader.hands_over().await;
    }
    assert_eq!(writer.words(), [AT_ONCE], "the last reader hands over");
    third.hands_over().await;
    writer.has_turn().await;
}

pub(crate) async fn m8_who_listens_learns_that_nobody_is_told_any_more(scene: &Scene) {
    let own = scene.alone();
    let (holder, waits) = (Party::at(scene, &*own), Party::at(scene, &*own));
    let key = scene.key();
    holder.wants(&key, 0).is_granted().await;
    waits.wants(&key, 1).is_refused().await;
    assert_eq!(waits.heard(), []);
    own.restart();
    let deaf = async || waits.heard().contains(&Heard::Deaf);
    until(scene, "the connection is gone", deaf).await;
}
