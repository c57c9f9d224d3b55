use super::*;
use crate::permits::Permits;

/// What holds before and after every step.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    reserved: Option<u64>,
    queued: Vec<u64>,
}

impl Bench {
    fn state(&mut self) -> State {
        let mut queued = self.line();
        let reserved = self.reserved().then(|| queued.remove(0));
        State { reserved, queued }
    }
}

/// Random numbers of a seed: a linear congruential generator (Knuth, MMIX), of which only the upper
/// bits are used.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn people() -> Vec<Person> {
    let mode = |since| {
        let permits = |count| Mode::Permit(Permits::new(count).unwrap());
        match since % 6 {
            0 | 3 => Mode::Shared,
            1 | 5 => permits(2),
            2 if since == 2 => permits(3),
            _ => Mode::Exclusive,
        }
    };
    let person = |since| Person {
        since,
        client: since % 5,
        mode: mode(since),
    };
    (1..=16).map(person).collect()
}

/// Lets `person` do something; says what.
fn act(bench: &mut Bench, person: Person, dice: &mut Dice) -> &'static str {
    match dice.below(16) {
        0..=6 => {
            let _ = bench.attempt(person);
            "asks"
        }
        7 => {
            let _ = bench.overtake(person);
            "barges"
        }
        8 => {
            let _ = bench.try_plainly(person);
            "tries"
        }
        9 | 10 => {
            bench.depart(person, &Departure::HandOver);
            "hands over"
        }
        11 => {
            bench.depart(person, &Departure::LeaveFree(MOMENT));
            "leaves it free"
        }
        12 => {
            bench.depart(person, &Departure::Requeue(person.ticket()));
            "is put back"
        }
        13 => {
            bench.leaves(person);
            "leaves"
        }
        14 => {
            if !bench.deaf.remove(&person.client) {
                bench.deaf.insert(person.client);
            }
            "hears or not"
        }
        _ => {
            bench.pass(Duration::from_millis(dice.below(3) * 600));
            "lets time pass"
        }
    }
}

fn judge(bench: &mut Bench, before: &State, person: Person, action: &str, at: &str) {
    let heard = bench.heard();
    let after = bench.state();
    let leases = &bench.slot.leases;
    if let [first, .., last] = leases.as_slice() {
        assert_eq!(first.claim.mode, last.claim.mode, "{at}: {leases:?}");
        let slots: BTreeSet<_> = leases.iter().map(|it| it.claim.slot).collect();
        let together = match first.claim.mode {
            Mode::Exclusive => false,
            Mode::Shared => true,
            Mode::Permit(_) => slots.len() == leases.len(),
        };
        assert!(together, "{at}: they hold it together: {leases:?}");
    }
    let mut all = after.queued.clone();
    all.extend(after.reserved);
    all.sort_unstable();
    all.dedup();
    let counted = after.queued.len() + usize::from(after.reserved.is_some());
    assert_eq!(all.len(), counted, "{at}: somebody waits twice: {after:?}");
    assert!(after.queued.is_sorted(), "{at}: {after:?}");
    if let Some(reserved) = after.reserved {
        assert!(leases.is_empty(), "{at}: reserved and held");
        let told = heard.contains(&(reserved, Word::YourTurn));
        let stood = before.reserved == Some(reserved);
        assert!(
            told || stood,
            "{at}: reserved for one who did not hear: {heard:?}"
        );
    }
    // The clock stood still meanwhile: the reservation cannot have lapsed.
    if action == "asks"
        && let Some(older) = before.reserved
        && older < person.since
    {
        assert_eq!(after.reserved, Some(older), "{at}: a younger one took it");
        assert!(leases.is_empty(), "{at}: a younger one holds it");
    }
}

#[test]
fn the_rules_hold_in_any_order() {
    let people = people();
    for seed in 0..300 {
        let (mut bench, mut dice) = (Bench::new(), Dice(seed));
        for number in 0..300 {
            let before = bench.state();
            let person = people[dice.below(people.len() as u64) as usize];
            let action = act(&mut bench, person, &mut dice);
            let at = format!("seed {seed}, step {number}, {person:?} {action}");
            judge(&mut bench, &before, person, action, &at);
        }
        for person in &people {
            bench.depart(*person, &Departure::HandOver);
            bench.leaves(*person);
        }
        let end = bench.state();
        assert_eq!((end.reserved, end.queued), (None, vec![]), "seed {seed}");
    }
}

#[test]
fn whoever_goes_on_asking_is_served() {
    let people = people();
    for seed in 0..100 {
        let (mut bench, mut dice) = (Bench::new(), Dice(seed));
        let mut left = people.clone();
        let mut rounds = 0;
        while !left.is_empty() {
            rounds += 1;
            assert!(rounds < 2_000, "seed {seed}: {left:?} still wait");
            let person = left[dice.below(left.len() as u64) as usize];
            if bench
                .attempt(person)
                .is_ok_and(|answer| is_granted(&answer))
            {
                bench.frees(person);
                left.retain(|it| *it != person);
            }
            bench.pass(Duration::from_millis(dice.below(10)));
        }
        assert_eq!(bench.line(), [], "seed {seed}");
    }
}
