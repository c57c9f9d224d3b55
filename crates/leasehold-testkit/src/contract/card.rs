use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::{Card, CardEdit, Member, MemberId, MemberSet, Sighting};

use super::scene::{Scene, edit, present};

async fn written(member: &Arc<dyn Member>, edit: &CardEdit) -> Card {
    assert!(member.write_card(edit).await.expect("an answer"));
    present(member).await.card.expect("the card")
}

fn earlier(clock: WallTime, span: Duration) -> WallTime {
    WallTime::from_micros(clock.as_micros() - span.as_micros() as u64)
}

pub(crate) async fn m4_a_card_is_written_whole_or_not_at_all(scene: &Scene) {
    let own = scene.alone();
    let member = own.member();
    let before = present(&member).await;
    assert_eq!(before.card, None);

    let mut first = edit(&before, scene.life());
    let age = Duration::from_millis(1234);
    (first.age, first.durable) = (Some(age), true);
    first.seen = vec![(MemberId::new("b:6379"), scene.life())];
    let card = written(&member, &first).await;
    let after = present(&member).await.clock;
    assert_eq!(card.set, first.set);
    assert_eq!((card.generation, card.life), (1, first.life));
    assert_eq!((&card.run, card.durable), (&first.run, true));
    assert!((before.clock..=after).contains(&card.changed));
    assert!((earlier(before.clock, age)..=earlier(after, age)).contains(&card.since));
    let seen = card.sightings[&MemberId::new("b:6379")];
    assert_eq!((seen.life, seen.changed), (first.seen[0].1, false));
    assert!((before.clock..=after).contains(&seen.at));

    let mut late = edit(&before, scene.life());
    late.seen = vec![(MemberId::new("late"), scene.life())];
    assert!(!member.write_card(&late).await.expect("an answer"));
    late.expected = Some(leasehold::Mark::of(first.life, 2));
    assert!(!member.write_card(&late).await.expect("an answer"));
    assert_eq!(present(&member).await.card.as_ref(), Some(&card));

    let mut confirmed = edit(&present(&member).await, first.life);
    (confirmed.age, confirmed.durable) = (None, false);
    let second = written(&member, &confirmed).await;
    assert_eq!((second.since, second.changed), (card.since, card.changed));
    assert_eq!(second.sightings, card.sightings);
    assert!(!second.durable);

    let mut larger = edit(&present(&member).await, first.life);
    (larger.generation, larger.age) = (2, None);
    let ids = ["a", "b:6379", "[::1]:7000, and more"].map(MemberId::new);
    larger.set = MemberSet::new(ids, Duration::from_secs(5), Duration::from_millis(20));
    let third = written(&member, &larger).await;
    assert_eq!((&third.set, third.generation), (&larger.set, 2));
    assert_eq!(third.since, card.since);
    assert!(third.changed > card.changed);
}

pub(crate) async fn m4_of_two_writers_one_wins(scene: &Scene) {
    let own = scene.alone();
    let members = [own.member(), own.member()];
    for round in 0..10 {
        let presence = present(&members[0]).await;
        let edits = [(); 2].map(|()| edit(&presence, scene.life()));
        let writing = members.iter().zip(&edits);
        let writing = writing.map(|(member, edit)| member.write_card(edit));
        let outcomes = futures_util::future::join_all(writing).await;
        let wrote: Vec<bool> = outcomes
            .into_iter()
            .map(|outcome| outcome.expect("an answer"))
            .collect();
        assert!(wrote[0] ^ wrote[1], "round {round}: {wrote:?}");
        let card = present(&members[0]).await.card.expect("a card");
        assert_eq!(card.life, edits[usize::from(wrote[1])].life);
    }
}

pub(crate) async fn m5_a_life_is_noted_when_it_is_first_heard_of(scene: &Scene) {
    let own = scene.alone();
    let member = own.member();
    let (one, two) = (MemberId::new("one"), MemberId::new("two: 6379 1"));
    let lives = [scene.life(), scene.life(), scene.life()];
    let tell = async |seen: &[(MemberId, leasehold::Life)]| {
        let before = present(&member).await.clock;
        member.witness(seen).await.expect("an answer");
        let after = present(&member).await;
        (before..=after.clock, after.card)
    };

    let (_, card) = tell(&[(one.clone(), lives[0])]).await;
    assert_eq!(card, None, "without a card nothing is remembered");

    let written = edit(&present(&member).await, scene.life());
    assert!(member.write_card(&written).await.expect("an answer"));
    let (then, card) = tell(&[(one.clone(), lives[0]), (two.clone(), lives[1])]).await;
    let first = card.expect("the card").sightings;
    for (id, life) in [(&one, lives[0]), (&two, lives[1])] {
        let Sighting {
            life: noted,
            at,
            changed,
        } = first[id];
        assert_eq!((noted, changed), (life, false), "{id}");
        assert!(then.contains(&at));
    }

    let (_, card) = tell(&[(two.clone(), lives[1]), (one.clone(), lives[0])]).await;
    assert_eq!(card.expect("the card").sightings, first);

    let (then, card) = tell(&[(one.clone(), lives[2]), (two.clone(), lives[1])]).await;
    let second = card.expect("the card").sightings;
    assert_eq!(second[&two], first[&two]);
    assert_eq!((second[&one].life, second[&one].changed), (lives[2], true));
    assert!(then.contains(&second[&one].at));

    let renamed = lives[2].renamed().expect("a new life has further names");
    let (_, card) = tell(&[(one.clone(), renamed)]).await;
    let renaming = card.expect("the card").sightings;
    let expected = Sighting {
        life: renamed,
        ..second[&one]
    };
    assert_eq!(renaming[&one], expected, "a later name, and no change");
    let (_, card) = tell(&[(one.clone(), lives[2])]).await;
    assert_eq!(card.expect("the card").sightings, renaming);

    let mut confirmed = edit(&present(&member).await, written.life);
    confirmed.seen = vec![(one.clone(), lives[2]), (two.clone(), lives[0])];
    assert!(member.write_card(&confirmed).await.expect("an answer"));
    let third = present(&member).await.card.expect("the card").sightings;
    assert_eq!(third[&one], renaming[&one]);
    assert_eq!((third[&two].life, third[&two].changed), (lives[0], true));
}
