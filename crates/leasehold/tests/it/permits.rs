//! Locks with permits over quorums: never too many, in turn, and on when members or holders die.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::{
    Attempt, Claim, Client, Counting, Departure, Error, ErrorKind, Fence, Guard, Inspection as _,
    Key, Member, MemoryStore, Mode, Permits, Semaphore, Slot, Store,
};
use leasehold_testkit::Fault;
use tokio::task::JoinHandle;

use crate::scene::{Scene, TTL};

const NAME: &str = "workers";

/// Who has a permit when, as its own guard says.
#[derive(Clone, Default)]
struct Book(Arc<Mutex<Entries>>);

#[derive(Clone, Default)]
struct Entries {
    inside: u32,
    most: u32,
    order: Vec<usize>,
    fences: Vec<Fence>,
}

impl Book {
    fn entries(&self) -> std::sync::MutexGuard<'_, Entries> {
        self.0.lock().expect("no panic")
    }

    fn so_far(&self) -> Entries {
        self.entries().clone()
    }

    /// Has the permit for a while, and gives it back.
    async fn works(
        self,
        number: usize,
        ambient: leasehold::ambient::Ambient,
        semaphore: Semaphore,
        span: Duration,
    ) -> Result<(), Error> {
        let guard = semaphore.acquire().await?;
        {
            let mut entries = self.entries();
            entries.inside += 1;
            entries.most = entries.most.max(entries.inside);
            entries.order.push(number);
            entries.fences.push(guard.fence());
        }
        ambient.clock.sleep_until(ambient.clock.now() + span).await;
        assert!(guard.is_valid(), "{:?}", guard.state());
        self.entries().inside -= 1;
        guard.release().await?;
        Ok(())
    }
}

/// Begins to wait, one after the other.
async fn line_up(
    scene: &Scene,
    clients: &[Client],
    permits: u32,
    span: Duration,
    book: &Book,
) -> Vec<JoinHandle<Result<(), Error>>> {
    let mut waiting = Vec::new();
    for (number, client) in clients.iter().enumerate() {
        let semaphore = client.semaphore(NAME, permits);
        let works = book
            .clone()
            .works(number, scene.ambient.clone(), semaphore, span);
        waiting.push(leasehold::background::spawn(works));
        scene.settle().await;
    }
    waiting
}

async fn all(waiting: Vec<JoinHandle<Result<(), Error>>>) {
    for waits in waiting {
        waits
            .await
            .expect("no panic")
            .expect("a permit, and its release");
    }
}

async fn has(client: &Client, permits: u32) -> Guard {
    let guard = client.semaphore(NAME, permits).acquire().await;
    guard.expect("a free permit")
}

fn clients(scene: &Scene, count: usize) -> Vec<Client> {
    (0..count).map(|_| scene.other_client()).collect()
}

fn key() -> Key {
    Key::new(NAME).expect("a valid name")
}

/// A world in which other random numbers are drawn.
fn with_luck(members: usize, luck: u32) -> Scene {
    let scene = Scene::quorum(members);
    for _ in 0..luck {
        scene.ambient.entropy.next_u64();
    }
    scene
}

async fn assert_nothing_left(scene: &Scene) {
    scene.settle().await;
    for store in &scene.stores {
        assert_eq!(store.waiters(&key()).await.expect("an answer"), []);
        assert_eq!(store.holders(&key()).await.expect("an answer"), []);
    }
}

#[tokio::test(start_paused = true)]
async fn as_many_hold_it_as_there_are_permits_and_fences_grow() {
    for members in [1, 3, 5] {
        let scene = Scene::quorum(members);
        assert_eq!(scene.client.guarantees().counting, Counting::Permits);
        let mut held: Vec<Guard> = Vec::new();
        for client in clients(&scene, 4) {
            held.push(has(&client, 4).await);
        }
        let fences: Vec<Fence> = held.iter().map(Guard::fence).collect();
        assert!(fences.is_sorted_by(|one, two| one < two), "{fences:?}");
        let workers = scene.client.semaphore(NAME, 4);
        assert!(workers.try_acquire().await.unwrap().is_none());
        assert!(
            scene
                .client
                .lock(NAME)
                .try_acquire()
                .await
                .unwrap()
                .is_none()
        );
        let holders = scene.client.holders(NAME).await.unwrap();
        assert_eq!(holders.len(), 4);
        scene.pass(TTL * 3).await;
        assert!(held.iter().all(Guard::is_valid), "they are kept");
        for guard in held {
            guard.release().await.unwrap();
        }
        assert_nothing_left(&scene).await;
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_wait_finds_the_permit_that_is_free() {
    for members in [3, 5] {
        for luck in 0..10 {
            let scene = with_luck(members, luck);
            let held = [has(&scene.client, 3).await, has(&scene.client, 3).await];
            let workers = scene.other_client().semaphore(NAME, 3);
            let last = workers.try_acquire().await.unwrap();
            assert!(last.is_some(), "one is free, whichever it is");
            drop((held, last));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn waiters_are_served_in_order_and_never_too_many() {
    const SPAN: Duration = Duration::from_millis(10);
    for members in [1, 3, 5] {
        let scene = Scene::quorum(members);
        let book = Book::default();
        let held = [has(&scene.client, 2).await, has(&scene.client, 2).await];
        let waiting = line_up(&scene, &clients(&scene, 10), 2, SPAN, &book).await;
        scene.pass(Duration::from_secs(3)).await;
        let freed = scene.now();
        for guard in held {
            guard.release().await.unwrap();
        }
        all(waiting).await;
        let took = scene.now().since(freed);
        let entries = book.so_far();
        assert_eq!(entries.order, (0..10).collect::<Vec<_>>(), "{members}");
        assert!(entries.fences.is_sorted(), "{:?}", entries.fences);
        assert_eq!(entries.most, 2);
        assert!(took < SPAN * 5 + Duration::from_millis(100), "{took:?}");
        assert_nothing_left(&scene).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_crowd_that_comes_at_once_is_served_and_never_too_many() {
    for (luck, (members, permits)) in (0..).zip([(3, 2), (5, 3), (5, 7), (3, 1), (1, 4), (5, 2)]) {
        let scene = with_luck(members, luck);
        let book = Book::default();
        let began = scene.now();
        let mut waiting = Vec::new();
        for (number, client) in clients(&scene, 8).iter().cycle().take(40).enumerate() {
            let semaphore = client.semaphore(NAME, permits);
            let span = Duration::from_millis(20 + number as u64 % 7);
            let works = book
                .clone()
                .works(number, scene.ambient.clone(), semaphore, span);
            waiting.push(leasehold::background::spawn(works));
        }
        all(waiting).await;
        let took = scene.now().since(began);
        let entries = book.so_far();
        assert_eq!(entries.order.len(), 40);
        assert_eq!(entries.most, permits, "of {members} members");
        assert!(took < Duration::from_secs(20), "{took:?}");
        assert_nothing_left(&scene).await;
    }
}

#[tokio::test(start_paused = true)]
async fn members_that_hear_each_claim_in_another_order_let_no_more_in() {
    const JITTER: Duration = Duration::from_millis(8);
    for luck in 0..6 {
        let (members, permits) = [(3, 2), (5, 2), (5, 4)][luck as usize % 3];
        let scene = with_luck(members, luck);
        let clients = clients(&scene, 6);
        for member in &scene.members {
            member.set(Fault::Jittery(JITTER));
        }
        let book = Book::default();
        let began = scene.now();
        let mut waiting = Vec::new();
        for (number, client) in clients.iter().cycle().take(24).enumerate() {
            let semaphore = client.semaphore(NAME, permits);
            let works = book
                .clone()
                .works(number, scene.ambient.clone(), semaphore, JITTER * 3);
            waiting.push(leasehold::background::spawn(works));
        }
        all(waiting).await;
        let took = scene.now().since(began);
        let entries = book.so_far();
        assert_eq!(entries.order.len(), 24);
        assert!(entries.most <= permits, "{} of {permits}", entries.most);
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
}

/// Tries to take a permit of two while these members cannot be reached.
async fn tried_without(scene: &Scene, client: &Client, missing: &[usize]) -> Option<Guard> {
    for (number, member) in scene.members.iter().enumerate() {
        member.set(match missing.contains(&number) {
            true => Fault::Unreachable,
            false => Fault::None,
        });
    }
    let tried = client.semaphore(NAME, 2).try_acquire().await;
    tried.expect("a majority answers")
}

#[tokio::test(start_paused = true)]
async fn three_holders_of_two_permits_cannot_each_have_another_majority() {
    for luck in 0..8 {
        let scene = with_luck(5, luck);
        let [one, two, three] = [(); 3].map(|()| scene.other_client());
        let first = tried_without(&scene, &one, &[3, 4]).await;
        let second = tried_without(&scene, &two, &[0, 1]).await;
        assert!(first.is_some() && second.is_some());
        // Each member that it reaches but the third one would have room for it.
        for missing in [4, 3] {
            let third = tried_without(&scene, &three, &[missing]).await;
            assert!(third.is_none(), "three have one of two: {third:?}");
        }
    }
}

/// Takes all permits as nobody's client: nobody renews them.
async fn held_by_the_dead(scene: &Scene, permits: u32) -> Vec<Claim> {
    let count = Permits::new(permits).expect("a number of permits");
    let mut held = Vec::new();
    for slot in count.slots() {
        let claim = scene.claim(NAME).with_mode(Mode::Permit(count));
        let claim = claim.with_slot(slot);
        let granted = scene.store().acquire(&claim).await;
        assert!(matches!(granted, Ok(Attempt::Granted(_))), "{granted:?}");
        held.push(claim);
    }
    held
}

#[tokio::test(start_paused = true)]
async fn all_holders_that_die_at_once_let_as_many_in_at_once() {
    for members in [1, 3, 5] {
        let scene = Scene::quorum(members);
        let began = scene.now();
        held_by_the_dead(&scene, 3).await;
        let book = Book::default();
        let span = Duration::from_secs(60);
        let waiting = line_up(&scene, &clients(&scene, 5), 3, span, &book).await;
        scene
            .pass(TTL - scene.now().since(began) - Duration::from_millis(1))
            .await;
        assert_eq!(book.entries().order, [0; 0], "not before their leases end");
        scene.pass(Duration::from_millis(501)).await;
        let mut order = book.entries().order.clone();
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2], "{members}");
        all(waiting).await;
        assert_eq!(book.entries().most, 3);
        assert_nothing_left(&scene).await;
    }
}

#[tokio::test(start_paused = true)]
async fn two_members_that_die_while_permits_are_contended_cost_nobody_a_permit() {
    for fault in [Fault::Unreachable, Fault::Frozen] {
        let scene = Scene::quorum(5);
        let book = Book::default();
        let span = Duration::from_millis(300);
        let waiting = line_up(&scene, &clients(&scene, 24), 3, span, &book).await;
        scene.pass(Duration::from_millis(500)).await;
        let died = scene.now();
        for member in [1, 4] {
            scene.members[member].set(fault);
        }
        all(waiting).await;
        let took = scene.now().since(died);
        let entries = book.so_far();
        assert_eq!(entries.order.len(), 24);
        assert_eq!(entries.most, 3);
        // Seven rounds of three, and what the silence of the dead ones costs each client once.
        assert!(took < Duration::from_secs(15), "{fault:?}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_writer_in_the_queue_is_not_overtaken() {
    for members in [1, 3] {
        let scene = Scene::quorum(members);
        let held = [has(&scene.client, 2).await, has(&scene.client, 2).await];
        let [one, two] = [scene.other_client(), scene.other_client()];
        let writes = leasehold::background::spawn(one.lock(NAME).acquire());
        scene.settle().await;
        let late = leasehold::background::spawn(two.semaphore(NAME, 2).acquire());
        scene.settle().await;
        let [first, second] = held;
        first.release().await.unwrap();
        scene.pass(Duration::from_secs(5)).await;
        assert!(
            !late.is_finished(),
            "a permit is free, and the writer waits"
        );
        assert!(!writes.is_finished(), "a permit is held");
        second.release().await.unwrap();
        let writer = writes.await.unwrap().unwrap();
        scene.pass(Duration::from_secs(1)).await;
        assert!(!late.is_finished());
        writer.release().await.unwrap();
        late.await.unwrap().unwrap().release().await.unwrap();
        assert_nothing_left(&scene).await;
    }
}

#[tokio::test(start_paused = true)]
async fn another_number_is_the_error_of_the_acquire_at_once() {
    for members in [1, 3, 5] {
        let scene = Scene::quorum(members);
        let guard = has(&scene.client, 2).await;
        let other = scene.other_client();
        // A minority that is gone makes no difference.
        for dead in 0..members / 2 {
            scene.members[dead].set(Fault::Unreachable);
        }
        let began = scene.now();
        for outcome in [
            other.semaphore(NAME, 3).acquire().await.map(drop),
            other.semaphore(NAME, 1).try_acquire().await.map(drop),
        ] {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermitsDiffer, "{error}");
            assert!(!error.is_retryable(), "{error}");
            assert!(
                error.to_string().contains("in use with 2 permits, not "),
                "{error}"
            );
        }
        assert!(scene.now().since(began) < Duration::from_secs(1));
        for member in &scene.members {
            member.set(Fault::None);
        }
        guard.release().await.unwrap();
        scene.pass(Duration::from_secs(2)).await;
        has(&other, 3).await.release().await.unwrap();
        assert_nothing_left(&scene).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_bad_number_or_name_is_an_error_that_names_it() {
    let scene = Scene::single();
    for count in [0, 129, u32::MAX] {
        let error = scene
            .client
            .semaphore(NAME, count)
            .acquire()
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(text.contains(&format!("{count} permits")), "{text}");
        assert!(text.contains(NAME), "{text}");
    }
    let error = scene
        .client
        .semaphore("", 1)
        .try_acquire()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert_eq!(scene.members[0].calls().len(), 0, "nothing was sent");
}

/// The permit that a member has for the one holder.
async fn slot_held(store: &MemoryStore, among: Permits) -> Slot {
    for slot in among.slots() {
        let mut claim = Scene::single().claim(NAME).with_mode(Mode::Permit(among));
        claim.slot = Some(slot);
        match store.acquire(&claim).await.expect("an answer") {
            Attempt::Busy(_) => return slot,
            Attempt::Granted(_) => {
                store
                    .depart(&claim, &Departure::HandOver)
                    .await
                    .expect("an answer");
            }
        }
    }
    panic!("nobody holds any")
}

#[tokio::test(start_paused = true)]
async fn all_members_hold_the_same_permit_for_one_owner() {
    for luck in 0..5 {
        let scene = with_luck(5, luck);
        let five = Permits::new(5).unwrap();
        let guard = has(&scene.client, 5).await;
        let mut slots = Vec::new();
        for store in &scene.stores {
            slots.push(slot_held(store, five).await);
        }
        slots.dedup();
        assert_eq!(slots.len(), 1, "{slots:?}");
        guard.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_for_another_permit_than_the_one_held_is_passed_on() {
    let scene = Scene::quorum(3);
    let two = Permits::new(2).unwrap();
    let held = held_by_the_dead(&scene, 2).await;
    let waiter = scene.other_client();
    let waits = leasehold::background::spawn(waiter.semaphore(NAME, 2).acquire());
    scene.settle().await;
    // Permit 1 is freed on a majority, and elsewhere only the other one.
    for (member, claim) in [(0, &held[1]), (1, &held[1])] {
        let freed = scene.stores[member]
            .depart(claim, &Departure::HandOver)
            .await;
        freed.expect("an answer");
    }
    let guard = waits.await.unwrap().unwrap();
    assert_eq!(scene.stores[2].waiters(&key()).await.unwrap().len(), 1);
    let freed = scene.stores[2].depart(&held[0], &Departure::HandOver).await;
    freed.expect("an answer");
    scene.settle().await;
    let holders = scene.stores[2].holders(&key()).await.unwrap();
    let owners: Vec<_> = holders.iter().map(|holder| holder.owner).collect();
    assert_eq!(owners, [Some(held[1].owner)], "it has one permit already");
    assert_eq!(
        scene.stores[2].waiters(&key()).await.unwrap(),
        [],
        "it waits for no more than one"
    );
    assert_eq!(
        slot_held(&scene.stores[2], two).await,
        two.slots().nth(1).unwrap()
    );
    guard.release().await.unwrap();
}
