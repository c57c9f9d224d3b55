use leasehold::{Departure, Held, LostReason, RESERVATION, Renewal, Word};

use super::party::{Party, SOON, busy, in_time, is_granted, line, until, waiters};
use super::scene::{LONG, Scene, held, inspection, short_ttl};

pub(crate) async fn m7_who_is_refused_is_queued_by_its_ticket(scene: &Scene) {
    let (holder, one, two) = (Party::new(scene), Party::new(scene), Party::new(scene));
    let key = scene.key();
    let holds = holder.wants(&key, 0);
    holds.is_granted().await;
    holds.is_granted().await;
    let (first, second, third) = (one.wants(&key, 1), two.wants(&key, 2), one.wants(&key, 3));
    assert_eq!(third.is_refused().await.place, Some(1));
    let refused = first.is_refused().await;
    assert_eq!(refused.place, Some(1));
    assert_eq!(refused.holder, Some(holds.claim.owner));
    let remaining = refused.remaining.expect("the rest of the lease");
    assert!(remaining <= LONG && remaining > LONG / 2, "{remaining:?}");
    assert!(!refused.silent && refused.sample.is_some(), "{refused:?}");
    assert_eq!(second.is_refused().await.place, Some(2));
    assert_eq!(third.is_refused().await.place, Some(3));
    assert_eq!(
        line(&holder, &key).await,
        waiters([&first, &second, &third])
    );
    let shown = inspection(&holder.member)
        .waiters(&key)
        .await
        .expect("an answer");
    assert_eq!(shown[1].ticket, second.ticket);
    assert_eq!(shown[1].mode, second.claim.mode);
}

pub(crate) async fn m7_tickets_of_one_moment_are_ordered_by_their_waiters(scene: &Scene) {
    let (holder, one) = (Party::new(scene), Party::new(scene));
    let key = scene.key();
    holder.wants(&key, 0).is_granted().await;
    let mut wishes: Vec<_> = (0..8).map(|_| one.wants(&key, 1)).collect();
    for wish in wishes.iter_mut().step_by(2) {
        wish.claim.mode = leasehold::Mode::Shared;
    }
    for wish in &wishes {
        wish.is_refused().await;
    }
    wishes.sort_by_key(|wish| wish.ticket);
    let expected: Vec<_> = wishes.iter().map(|wish| wish.ticket.waiter).collect();
    assert_eq!(line(&holder, &key).await, expected);
}

pub(crate) async fn m7_a_free_lock_goes_to_the_oldest_that_hears_of_it(scene: &Scene) {
    let (holder, one, two) = (Party::new(scene), Party::new(scene), Party::new(scene));
    let key = scene.key();
    let holds = holder.wants(&key, 0);
    let (older, younger) = (one.wants(&key, 1), two.wants(&key, 2));
    holds.is_granted().await;
    older.is_refused().await;
    younger.is_refused().await;
    // Freed without being handed over: the first that asks afterwards has it done.
    holds.depart(Departure::LeaveFree(RESERVATION / 4)).await;
    let reserved = async || younger.is_refused().await.remaining > Some(RESERVATION / 2);
    until(scene, "the span is over", reserved).await;
    let told = async || older.words().contains(&Word::YourTurn);
    until(scene, "the oldest is told", told).await;
    assert_eq!(
        line(&holder, &key).await.last(),
        Some(&younger.ticket.waiter)
    );
    // However late it comes: nobody else has asked.
    older.is_granted().await;
    assert_eq!(line(&holder, &key).await, waiters([&younger]));
}

pub(crate) async fn m7_what_is_reserved_is_granted_to_its_waiter_and_to_an_older_one(
    scene: &Scene,
) {
    let parties = [(); 4].map(|()| Party::new(scene));
    let [holder, one, two, three] = &parties;
    let (younger_comes, older_comes, it_comes, wishes) = in_time(scene, async |key| {
        let holds = holder.wants(&key, 0);
        let (older, it, younger) = (one.wants(&key, 1), two.wants(&key, 2), three.wants(&key, 3));
        holds.is_granted().await;
        it.is_refused().await;
        holds.hands_over().await;
        let answers = (younger.ask().await, older.ask().await, it.ask().await);
        (answers.0, answers.1, answers.2, [older, it, younger])
    })
    .await;
    let [older, it, younger] = &wishes;
    let refused = busy(younger_comes);
    assert_eq!((refused.holder, refused.place), (None, Some(1)));
    assert!(refused.remaining.is_some_and(|left| left <= RESERVATION));
    assert!(is_granted(&older_comes), "{older_comes:?}");
    assert_eq!(
        busy(it_comes).place,
        Some(1),
        "it waits again, before the younger one"
    );
    assert_eq!(line(holder, &it.claim.key).await, waiters([it, younger]));
    older.hands_over().await;
    it.is_granted().await;
    assert_eq!(line(holder, &it.claim.key).await, waiters([younger]));
}

pub(crate) async fn m7_barging_takes_what_is_free_or_reserved_and_queues_nowhere(scene: &Scene) {
    let parties = [(); 3].map(|()| Party::new(scene));
    let [holder, one, two] = &parties;
    let (barged, wishes) = in_time(scene, async |key| {
        let (holds, waits, barges) = (
            holder.wants(&key, 0),
            one.wants(&key, 1),
            two.wants(&key, 2),
        );
        holds.is_granted().await;
        assert_eq!(busy(barges.barge().await).place, None);
        waits.is_refused().await;
        holds.hands_over().await;
        (barges.barge().await, [holds, waits, barges])
    })
    .await;
    let [holds, waits, barges] = &wishes;
    assert!(is_granted(&barged), "{barged:?}");
    let refused = busy(holds.barge().await);
    assert_eq!(
        (refused.holder, refused.place),
        (Some(barges.claim.owner), None)
    );
    assert_eq!(line(holder, &waits.claim.key).await, waiters([waits]));
    barges.hands_over().await;
    waits.is_granted().await;
}

pub(crate) async fn m7_readers_join_unless_an_older_writer_waits(scene: &Scene) {
    let (one, two) = (Party::new(scene), Party::new(scene));
    let key = scene.key();
    let (holds, joins) = (one.wants(&key, 0).shared(), one.wants(&key, 1).shared());
    let (writer, late) = (two.wants(&key, 2), one.wants(&key, 3).shared());
    holds.is_granted().await;
    assert_eq!(writer.is_refused().await.place, Some(1));
    joins.is_granted().await;
    assert_eq!(late.is_refused().await.place, Some(2));
    writer.is_wanted().await;
    writer.is_refused().await;
    let plain = one.wants(&key, 9).shared();
    busy(plain.try_once().await);
    assert_eq!(line(&one, &key).await, waiters([&writer, &late]));
    holds.hands_over().await;
    joins.hands_over().await;
    writer.is_granted().await;
}

pub(crate) async fn m8_who_asks_is_not_told_to_stand_in(scene: &Scene) {
    let parties = [(); 3].map(|()| Party::new(scene));
    let [holder, one, two] = &parties;
    let key = scene.key();
    let (mut holds, first, asks) = (
        holder.wants(&key, 0),
        one.wants(&key, 1),
        two.wants(&key, 2),
    );
    holds.claim.ttl = short_ttl(&scene.open());
    holds.is_granted().await;
    first.is_refused().await;
    let told = async || {
        asks.is_refused().await;
        first.words().contains(&Word::YourTurn)
    };
    until(scene, "the lease ends", told).await;
    assert_eq!(asks.words(), []);
}

pub(crate) async fn m9_a_reservation_that_lapsed_costs_its_client_its_places(scene: &Scene) {
    let parties = [(); 3].map(|()| Party::new(scene));
    let [holder, silent, lively] = &parties;
    let key = scene.key();
    let holds = holder.wants(&key, 0);
    let (it, sibling) = (silent.wants(&key, 1), silent.wants(&key, 2));
    let other = lively.wants(&key, 3);
    holds.is_granted().await;
    for waits in [&it, &sibling, &other] {
        waits.is_refused().await;
    }
    holds.hands_over().await;
    it.is_told(Word::YourTurn).await;
    other.is_told(SOON).await;
    let granted = async || is_granted(&other.ask().await);
    until(scene, "the reservation lapses", granted).await;
    assert_eq!(line(holder, &key).await, []);
    assert_eq!(
        sibling.words(),
        [],
        "of a client that does not answer nobody is told"
    );
    assert_eq!(sibling.is_refused().await.place, Some(1));
    other.hands_over().await;
    sibling.is_told(Word::YourTurn).await;
}

pub(crate) async fn m9_a_client_that_asks_again_keeps_its_places(scene: &Scene) {
    let parties = [(); 3].map(|()| Party::new(scene));
    let [holder, slow, other] = &parties;
    let key = scene.key();
    let holds = holder.wants(&key, 0);
    let (it, sibling) = (slow.wants(&key, 1), slow.wants(&key, 2));
    let third = other.wants(&key, 3);
    holds.is_granted().await;
    for waits in [&it, &sibling, &third] {
        waits.is_refused().await;
    }
    holds.hands_over().await;
    // Nobody asks meanwhile, so nobody is dropped yet.
    let lapsed = async || line(holder, &key).await == waiters([&sibling, &third]);
    until(scene, "the reservation lapses", lapsed).await;
    let youngest = slow.wants(&key, 4);
    youngest.is_refused().await;
    sibling.is_told(Word::YourTurn).await;
    sibling.is_granted().await;
    assert_eq!(line(holder, &key).await, waiters([&third, &youngest]));
}

pub(crate) async fn m10_who_does_not_wait_takes_nothing_that_is_reserved(scene: &Scene) {
    let parties = [(); 3].map(|()| Party::new(scene));
    let [holder, one, two] = &parties;
    let (answers, waits) = in_time(scene, async |key| {
        let (holds, waits) = (holder.wants(&key, 0), one.wants(&key, 1));
        let (writer, reader) = (two.wants(&key, 2), two.wants(&key, 3).shared());
        holds.is_granted().await;
        waits.is_refused().await;
        holds.hands_over().await;
        let answers = [writer.try_once().await, reader.try_once().await];
        (answers, waits)
    })
    .await;
    for answer in answers {
        let refused = busy(answer);
        assert_eq!((refused.holder, refused.place), (None, None));
    }
    let key = &waits.claim.key;
    assert!(
        inspection(&holder.member)
            .holders(key)
            .await
            .expect("an answer")
            .is_empty()
    );
    let listed = inspection(&holder.member).list(key.as_str(), 9).await;
    assert!(
        listed.expect("an answer").is_empty(),
        "what is reserved is not held"
    );
    waits.is_granted().await;
}

pub(crate) async fn m6_nothing_is_put_back_where_the_key_is_reserved_or_left_free(scene: &Scene) {
    let parties = [(); 2].map(|()| Party::new(scene));
    let [holder, other] = &parties;
    for departure in [Departure::HandOver, Departure::LeaveFree(LONG / 3)] {
        let (renewed, waits) = in_time(scene, async |key| {
            let (holds, waits) = (holder.wants(&key, 0), other.wants(&key, 1));
            holds.is_granted().await;
            waits.is_refused().await;
            holds.depart(departure).await;
            let fence = leasehold::Fence::new(7).expect("a fence");
            let lease: Held = held(&holds.claim, fence);
            let renewed = holder.member.renew(std::slice::from_ref(&lease)).await;
            holder.member.heal(&[lease]).await.expect("an answer");
            (renewed, waits)
        })
        .await;
        assert!(
            matches!(renewed[..], [Renewal::Lost(LostReason::Gone)]),
            "nobody holds it: {renewed:?}"
        );
        let holders = inspection(&holder.member).holders(&waits.claim.key).await;
        assert!(holders.expect("an answer").is_empty());
    }
}
