use leasehold::{Counting, Departure, ErrorKind, Key, Member, Mode, Release, Slot, Turn, Word};

use super::party::{Party, SOON, Wish, in_time, is_granted, line, until, waiters};
use super::permits::{THREE, permits, slot, slots};
use super::scene::{LONG, Scene, short_ttl};

/// Some parties, where the member offers permits. Where it does not, makes sure that it says so to
/// those who would wait for one.
pub(super) async fn parties<'a, const N: usize>(scene: &'a Scene) -> Option<[Party<'a>; N]> {
    let parties = [(); N].map(|()| Party::new(scene));
    let member: &dyn Member = &*parties[0].member;
    if member.guarantees().counting == Counting::Permits {
        return Some(parties);
    }
    let wish = parties[0].wants(&scene.key(), 1).permit();
    for turn in [Turn::Queued(wish.ticket), Turn::Barging] {
        let error = member.acquire_in_turn(&wish.claim, &turn).await;
        let error = error.expect_err("a refusal");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
    assert_eq!(line(&parties[0], &wish.claim.key).await, []);
    None
}

/// The holders of all three permits, 0 to 2.
pub(super) async fn full<'a>(holder: &'a Party<'a>, key: &Key) -> [Wish<'a>; 3] {
    let holds = [0, 1, 2].map(|number| holder.wants(key, 0).permit().of_slot(number));
    for holds in &holds {
        holds.is_granted().await;
    }
    holds
}

impl Wish<'_> {
    /// One of three permits.
    pub(super) fn permit(self) -> Self {
        self.permit_of(THREE)
    }

    pub(super) fn permit_of(mut self, count: u32) -> Self {
        self.claim.mode = Mode::Permit(permits(count));
        self
    }

    pub(super) fn of_slot(mut self, number: u32) -> Self {
        self.claim.slot = Some(slot(number));
        self
    }

    pub(super) async fn has_turn(&self) {
        let what = format!("the turn for {}", self.claim.key);
        let told = async || self.words().contains(&Word::YourTurn);
        until(self.party.scene, &what, told).await;
    }

    /// The permits that it was told of.
    fn named(&self) -> Vec<Slot> {
        let hints = self.hints();
        hints.iter().filter_map(|hint| hint.slot).collect()
    }
}

pub(crate) async fn m11_a_permit_that_is_freed_is_offered_to_the_oldest(scene: &Scene) {
    let Some(parties) = parties::<4>(scene).await else {
        return;
    };
    let [holder, one, two, three] = &parties;
    let (wishes, told, refused) = in_time(scene, async |key| {
        let holds = full(holder, &key).await;
        let wishes = [
            one.wants(&key, 1).permit(),
            two.wants(&key, 2).permit(),
            three.wants(&key, 3).permit(),
        ];
        for wish in [&wishes[1], &wishes[0], &wishes[2]] {
            let refused = wish.is_refused().await;
            assert!(refused.free.is_empty(), "{refused:?}");
            assert!(refused.remaining.is_some_and(|it| it <= LONG));
        }
        holds[1].hands_over().await;
        wishes[0].is_told(Word::YourTurn).await;
        wishes[1].is_told(SOON).await;
        let told = wishes[0].named();
        // The turn is of the first alone, and it is told once.
        let refused = [wishes[1].is_refused().await, wishes[2].is_refused().await];
        (wishes, told, refused)
    })
    .await;
    let [first, second, third] = &wishes;
    assert_eq!(told, [slot(1)]);
    for (refused, place) in refused.iter().zip([2, 3]) {
        assert_eq!(refused.place, Some(place));
        assert!(refused.free.is_empty(), "{refused:?}");
    }
    assert_eq!(first.words(), [Word::YourTurn]);
    assert_eq!(third.words(), []);
    first.is_granted().await;
    assert_eq!(
        line(holder, &first.claim.key).await,
        waiters([second, third])
    );
}

pub(crate) async fn m11_several_permits_are_offered_to_as_many(scene: &Scene) {
    let Some(parties) = parties::<4>(scene).await else {
        return;
    };
    let [holder, one, two, three] = &parties;
    let (wishes, named) = in_time(scene, async |key| {
        let holds = full(holder, &key).await;
        let wishes = [
            one.wants(&key, 1).permit(),
            two.wants(&key, 2).permit(),
            three.wants(&key, 3).permit(),
        ];
        for wish in &wishes {
            wish.is_refused().await;
        }
        for holds in &holds[..2] {
            holds.hands_over().await;
        }
        for wish in &wishes[..2] {
            wish.has_turn().await;
        }
        let mut named = [wishes[0].named(), wishes[1].named()].concat();
        named.sort();
        let younger_first = [2, 1, 0].map(|place: usize| &wishes[place]);
        let mut granted = Vec::new();
        for wish in younger_first {
            granted.push(is_granted(&wish.ask().await));
        }
        assert_eq!(granted, [false, true, true]);
        (wishes, named)
    })
    .await;
    assert_eq!(named, [slot(0), slot(1)], "each another one");
    assert!(!wishes[2].words().contains(&Word::YourTurn));
    assert_eq!(
        line(holder, &wishes[0].claim.key).await,
        waiters([&wishes[2]])
    );
}

pub(crate) async fn m11_leases_that_end_let_the_next_ones_in(scene: &Scene) {
    let Some(parties) = parties::<4>(scene).await else {
        return;
    };
    let [holder, one, two, three] = &parties;
    // Nothing that took longer than a reservation counts: no lease ends before all wait.
    let ttl = short_ttl(&scene.open());
    let wishes = in_time(scene, async |key| {
        for number in [0, 1, 2] {
            let mut holds = holder.wants(&key, 0).permit().of_slot(number);
            holds.claim.ttl = ttl;
            holds.is_granted().await;
        }
        let wishes = [
            one.wants(&key, 1).permit(),
            two.wants(&key, 2).permit(),
            three.wants(&key, 3).permit(),
            one.wants(&key, 4).permit(),
        ];
        for wish in wishes[1..].iter().rev() {
            if is_granted(&wish.ask().await) {
                // Too slow: it is run again.
                break;
            }
        }
        wishes
    })
    .await;
    let ended = async || is_granted(&wishes[0].ask().await);
    until(scene, "the leases end", ended).await;
    for wish in &wishes[1..3] {
        let granted = async || is_granted(&wish.ask().await);
        until(scene, "it is its turn", granted).await;
    }
    assert!(wishes[3].is_refused().await.free.is_empty());
    assert_eq!(
        line(holder, &wishes[0].claim.key).await,
        waiters([&wishes[3]])
    );
}

pub(crate) async fn m11_who_wants_a_taken_one_in_its_turn_learns_of_the_others(scene: &Scene) {
    let Some(parties) = parties::<3>(scene).await else {
        return;
    };
    let [holder, one, two] = &parties;
    let (refused, behind, wishes) = in_time(scene, async |key| {
        let holds = holder.wants(&key, 0).permit().of_slot(1);
        holds.is_granted().await;
        let (first, second) = (one.wants(&key, 1).permit().of_slot(1), two.wants(&key, 2));
        let refused = first.is_refused().await;
        // One that wants it alone comes after it, and keeps the next one out.
        let behind = second.is_refused().await;
        let late = holder.wants(&key, 3).permit().is_refused().await;
        assert!(late.free.is_empty() && late.place == Some(3), "{late:?}");
        (refused, behind, [first, second])
    })
    .await;
    assert_eq!((refused.place, refused.free), (Some(1), slots(&[0, 2])));
    assert!(behind.free.is_empty(), "{behind:?}");
    let [first, _] = wishes;
    assert!(!first.words().contains(&Word::YourTurn), "it knows already");
    first.of_slot(2).is_granted().await;
}

pub(crate) async fn m11_who_does_not_come_is_passed_over(scene: &Scene) {
    let Some(parties) = parties::<3>(scene).await else {
        return;
    };
    let [holder, silent, lively] = &parties;
    let key = scene.key();
    let holds = full(holder, &key).await;
    let (it, sibling) = (
        silent.wants(&key, 1).permit(),
        silent.wants(&key, 2).permit(),
    );
    let other = lively.wants(&key, 3).permit();
    for waits in [&it, &sibling, &other] {
        waits.is_refused().await;
    }
    holds[2].hands_over().await;
    it.is_told(Word::YourTurn).await;
    other.is_told(SOON).await;
    let granted = async || is_granted(&other.ask().await);
    until(scene, "the offer lapses", granted).await;
    assert_eq!(line(holder, &key).await, []);
    assert_eq!(sibling.is_refused().await.place, Some(1));
    other.hands_over().await;
    sibling.has_turn().await;
    sibling.is_granted().await;
}

pub(crate) async fn m11_the_first_permit_has_the_others_offered(scene: &Scene) {
    let Some(parties) = parties::<4>(scene).await else {
        return;
    };
    let [holder, one, two, three] = &parties;
    let key = scene.key();
    let holds = holder.wants(&key, 0);
    let (first, second) = (one.wants(&key, 1).permit(), two.wants(&key, 2).permit());
    let (third, fourth) = (three.wants(&key, 3).permit(), one.wants(&key, 4).permit());
    holds.is_granted().await;
    for waits in [&first, &second, &third, &fourth] {
        waits.is_refused().await;
    }
    holds.hands_over().await;
    first.is_granted().await;
    second.has_turn().await;
    third.has_turn().await;
    third.is_granted().await;
    second.is_granted().await;
    assert!(!fourth.words().contains(&Word::YourTurn));
    assert_eq!(line(holder, &key).await, waiters([&fourth]));
}

pub(crate) async fn m11_what_was_offered_to_one_that_leaves_is_offered_on(scene: &Scene) {
    let Some(parties) = parties::<3>(scene).await else {
        return;
    };
    let [holder, one, two] = &parties;
    let key = scene.key();
    let holds = full(holder, &key).await;
    let (first, second) = (one.wants(&key, 1).permit(), two.wants(&key, 2).permit());
    first.is_refused().await;
    second.is_refused().await;
    holds[0].hands_over().await;
    first.has_turn().await;
    first.leaves().await;
    second.has_turn().await;
    assert_eq!(second.named(), [slot(0)]);
    second.is_granted().await;
    // The attempt failed elsewhere: it waits on, and is told again.
    let back = Departure::Requeue(second.ticket);
    assert_eq!(second.depart(back).await, Release::Released);
    let again = async || second.named().len() == 2;
    until(scene, "it is its turn once more", again).await;
    second.is_granted().await;
    assert_eq!(line(holder, &key).await, []);
}
