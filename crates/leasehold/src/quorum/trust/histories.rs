//! Invented histories: who counts, and from when on.

use super::*;
use crate::card::{Card, CardEdit, Life, RunId, Sighting};
use crate::clock::WallTime;
use crate::quorum::trust::cards::CardStep;
use crate::quorum::trust::distrust::{ClockFault, Forgetting};

const MAX_TTL: Duration = Duration::from_secs(60);
const TOLERANCE: Duration = Duration::from_millis(250);
const SECOND: u64 = 1_000_000;

/// A server as a history moves it along.
#[derive(Clone)]
struct Server {
    run: u64,
    started: i64,
    durable: bool,
    card: Option<Card>,
    /// Ahead of the true time, in microseconds.
    clock: i64,
}

/// Servers, and one client that knows of them what it asked. Times are in seconds of true time.
struct World {
    servers: Vec<Server>,
    trust: Trust,
    /// True time, and how far our clock has fallen behind it: microseconds.
    now: i64,
    behind: i64,
    lives: u64,
}

fn ids(count: usize) -> Vec<MemberId> {
    (0..count).map(|n| MemberId::new(format!("m{n}"))).collect()
}

fn set(count: usize) -> MemberSet {
    MemberSet::new(ids(count), MAX_TTL, TOLERANCE)
}

impl World {
    /// A set that was formed long ago, which this client has not met yet.
    fn new(count: usize) -> Self {
        let server = |n: usize| Server {
            run: n as u64,
            started: 0,
            durable: false,
            card: None,
            clock: 0,
        };
        let mut world = Self {
            servers: (0..count).map(server).collect(),
            trust: Trust::new(ids(count), set(count), true),
            now: 1_000_000 * SECOND as i64,
            behind: 0,
            lives: 0,
        };
        world.meet_all();
        world.keep_cards();
        world.forget_the_client();
        world.pass(100_000);
        world
    }

    /// Another client takes over, which knows nothing.
    fn forget_the_client(&mut self) {
        let count = self.servers.len();
        self.trust = Trust::new(ids(count), set(count), true);
    }

    fn pass(&mut self, seconds: i64) {
        self.now += seconds * SECOND as i64;
    }

    fn ours(&self) -> BootInstant {
        BootInstant::from_nanos(((self.now - self.behind) * 1_000) as u64)
    }

    fn at(&self) -> Between {
        let now = self.ours();
        Between {
            sent: now,
            received: now,
        }
    }

    fn wall(&self, member: usize) -> WallTime {
        WallTime::from_micros((self.now + self.servers[member].clock) as u64)
    }

    fn presence(&self, member: usize) -> Presence {
        let server = &self.servers[member];
        let uptime = self.now + server.clock - server.started;
        let mut presence = Presence::new(
            RunId::new(server.run.to_string()),
            self.wall(member),
            Duration::from_micros(uptime.max(0) as u64),
        );
        presence.durable = server.durable;
        presence.card = server.card.clone();
        presence
    }

    fn meet(&mut self, member: usize) -> Learned {
        self.trust.present(member, self.presence(member), self.at())
    }

    fn meet_all(&mut self) {
        for member in 0..self.servers.len() {
            self.meet(member);
        }
    }

    /// Does what the client would do about the cards, until nothing is left to do.
    fn keep_cards(&mut self) {
        for _ in 0..10 {
            let lives = &mut self.lives;
            let mut draw = || {
                *lives += 1;
                Life::parse(&format!("{lives:016x}")).unwrap()
            };
            let steps = self.trust.card_steps(&mut draw);
            if steps.is_empty() {
                return;
            }
            for step in steps {
                let member = step.member();
                match step {
                    CardStep::Write(member, edit) => self.write(member, edit),
                    CardStep::Witness(member, seen) => self.witness(member, &seen),
                    CardStep::Look(_) => {}
                }
                // Answers come one after the other.
                self.now += 1;
                self.meet(member);
            }
        }
        panic!("the cards are never done");
    }

    fn write(&mut self, member: usize, edit: CardEdit) {
        let clock = self.wall(member);
        let old = self.servers[member].card.take();
        assert_eq!(old.as_ref().map(Card::mark), edit.expected);
        let age = edit.age.map(|age| age.as_micros() as u64);
        self.servers[member].card = Some(Card {
            set: edit.set,
            generation: edit.generation,
            changed: clock,
            life: edit.life,
            since: match (age, &old) {
                (None, Some(old)) => old.since,
                (age, _) => {
                    WallTime::from_micros(clock.as_micros().saturating_sub(age.unwrap_or_default()))
                }
            },
            run: edit.run,
            durable: edit.durable,
            sightings: old.map(|card| card.sightings).unwrap_or_default(),
        });
        self.witness(member, &edit.seen);
    }

    fn witness(&mut self, member: usize, seen: &[(MemberId, Life)]) {
        let at = self.wall(member);
        let card = self.servers[member].card.as_mut().unwrap();
        for (id, life) in seen {
            let changed = match card.sightings.get(id) {
                Some(known) if known.life == *life => continue,
                known => known.is_some(),
            };
            let life = *life;
            card.sightings
                .insert(id.clone(), Sighting { life, at, changed });
        }
    }

    fn restart(&mut self, member: usize, keeps_data: bool) {
        let server = &mut self.servers[member];
        server.run += 1_000;
        server.started = self.now + server.clock;
        if !keeps_data {
            server.card = None;
        }
    }

    fn step(&mut self, member: usize, seconds: i64) {
        self.servers[member].clock += seconds * SECOND as i64;
    }

    /// Whether an answer to a request sent now counts.
    fn counts(&self, member: usize) -> Result<(), Distrust> {
        self.trust.counts(member, self.ours(), None)
    }

    fn all_count(&self) {
        for member in 0..self.servers.len() {
            assert_eq!(self.counts(member), Ok(()), "m{member}");
        }
    }

    fn forgot(&self, member: usize) -> Duration {
        match self.counts(member) {
            Err(Distrust::Forgot {
                until: Some(until), ..
            }) => until.since(self.ours()),
            other => panic!("m{member}: {other:?}"),
        }
    }
}

#[test]
fn a_set_that_stands_counts_at_once_for_a_new_client() {
    let mut world = World::new(5);
    assert_eq!(world.counts(0), Err(Distrust::Unknown));
    world.meet_all();
    world.all_count();
}

#[test]
fn a_first_client_waits_for_servers_that_started_a_short_time_ago() {
    let mut world = World::new(3);
    for member in 0..3 {
        world.servers[member].card = None;
    }
    world.restart(1, false);
    world.pass(20);
    world.meet(0);
    world.meet(2);
    world.keep_cards();
    let missing = vec![MemberId::new("m1")];
    assert_eq!(world.counts(0), Err(Distrust::NotFormed { missing }));
    world.meet(1);
    world.keep_cards();
    assert_eq!(world.counts(0), Ok(()));
    assert_eq!(world.forgot(1).as_secs(), 40, "61 s from its start");
    world.pass(41);
    world.all_count();
}

#[test]
fn a_member_that_restarts_without_its_data_waits_and_then_counts_again() {
    let mut world = World::new(3);
    world.meet_all();
    world.restart(1, false);
    world.pass(1);
    world.meet(1);
    let what = Forgetting::LostCard;
    assert_eq!(world.counts(1), Err(Distrust::Forgot { what, until: None }));
    world.keep_cards();
    assert_eq!(world.forgot(1).as_secs(), 60);
    world.pass(60);
    assert!(world.counts(1).is_err());
    // What was asked for before the wait was over does not count, whenever its answer comes.
    let sent_too_early = world.ours();
    world.pass(2);
    assert!(world.trust.counts(1, sent_too_early, None).is_err());
    world.all_count();
}

#[test]
fn a_client_that_comes_later_believes_card_and_witnesses() {
    let mut world = World::new(3);
    world.meet_all();
    world.restart(1, false);
    world.meet(1);
    world.keep_cards();
    world.forget_the_client();
    world.pass(20);
    world.meet_all();
    assert_eq!(world.forgot(1).as_secs(), 40);
    world.forget_the_client();
    world.pass(3_600);
    world.meet_all();
    world.all_count();
}

#[test]
fn booted_with_a_clock_an_hour_behind_then_stepped_right() {
    let mut world = World::new(3);
    world.meet_all();
    // Its card survives in part, and says that its new life began an hour ago, by its wrong clock.
    world.step(1, -3_600);
    world.restart(1, true);
    world.meet(1);
    world.keep_cards();
    world.step(1, 3_600);
    world.pass(2);
    world.forget_the_client();
    world.meet_all();
    let left = world.forgot(1).as_secs();
    assert!(
        (58..=60).contains(&left),
        "the witnesses know better: {left}"
    );
    world.pass(62);
    world.all_count();
}

#[test]
fn a_card_that_survived_a_restart_of_a_server_that_is_not_durable_proves_nothing() {
    let mut world = World::new(3);
    world.meet_all();
    world.restart(2, true);
    world.meet(2);
    let what = Forgetting::Restarted;
    assert_eq!(world.counts(2), Err(Distrust::Forgot { what, until: None }));
    world.keep_cards();
    assert!(world.forgot(2).as_secs() >= 60);
}

#[test]
fn a_durable_member_goes_on_at_once() {
    let mut world = World::new(3);
    world.servers[2].durable = true;
    world.servers[2].card.as_mut().unwrap().durable = true;
    world.meet_all();
    let life = world.servers[2].card.as_ref().unwrap().life;
    world.restart(2, true);
    world.meet(2);
    assert_eq!(world.counts(2), Ok(()));
    world.keep_cards();
    let card = world.servers[2].card.as_ref().unwrap();
    assert_eq!((card.life, card.run.as_str()), (life, "1002"));
    assert_eq!(world.counts(2), Ok(()));
}

#[test]
fn everysec_that_became_always_after_the_crash_was_not_durable_before_it() {
    let mut world = World::new(3);
    world.meet_all();
    world.servers[2].durable = true;
    world.restart(2, true);
    world.meet(2);
    assert!(world.counts(2).is_err());
    world.keep_cards();
    assert!(world.forgot(2).as_secs() >= 60);
    assert!(
        world.servers[2].card.as_ref().unwrap().durable,
        "in this run it is"
    );
}

#[test]
fn a_server_that_ceases_to_be_durable_has_it_on_its_card() {
    let mut world = World::new(3);
    world.servers[0].card.as_mut().unwrap().durable = true;
    world.meet_all();
    world.keep_cards();
    assert!(!world.servers[0].card.as_ref().unwrap().durable);
    world.servers[0].durable = true;
    world.meet_all();
    world.keep_cards();
    assert!(
        !world.servers[0].card.as_ref().unwrap().durable,
        "not in this run any more"
    );
}

#[test]
fn a_rolling_restart_takes_out_one_after_the_other() {
    let mut world = World::new(3);
    world.meet_all();
    for member in 0..3 {
        world.restart(member, false);
        world.pass(5);
        world.meet_all();
        world.keep_cards();
        for other in 0..3 {
            assert_eq!(
                world.counts(other).is_err(),
                other == member,
                "m{other} after m{member}"
            );
        }
        world.pass(70);
        world.meet_all();
        world.all_count();
    }
}

#[test]
fn all_restarted_unseen_must_all_wait() {
    let mut world = World::new(3);
    for member in 0..3 {
        world.restart(member, true);
    }
    world.pass(86_400);
    world.meet_all();
    world.keep_cards();
    for member in 0..3 {
        assert!(world.forgot(member).as_secs() >= 60, "m{member}");
    }
    world.pass(62);
    world.all_count();
}

#[test]
fn the_restart_of_a_witness_casts_no_doubt_on_those_it_forgot() {
    let mut world = World::new(3);
    world.meet_all();
    world.restart(0, false);
    world.meet(0);
    world.keep_cards();
    world.forget_the_client();
    world.pass(1);
    world.meet_all();
    assert!(world.counts(0).is_err());
    assert_eq!((world.counts(1), world.counts(2)), (Ok(()), Ok(())));
}

#[test]
fn an_old_set_is_neither_served_nor_brought_back() {
    let mut world = World::new(3);
    for member in 0..2 {
        world.servers[member].card.as_mut().unwrap().set = set(4);
    }
    world.restart(2, false);
    world.meet_all();
    assert!(matches!(
        world.counts(0),
        Err(Distrust::OtherSet { generation: 1, .. })
    ));
    let text = world.counts(0).unwrap_err().to_string();
    assert!(
        text.contains("says m0,m1,m2,m3 (") && text.contains("this client m0,m1,m2 ("),
        "{text}"
    );
    world.keep_cards();
    assert!(
        world.servers[2].card.is_none(),
        "no majority vouches for the old set"
    );
}

#[test]
fn other_limits_are_another_set_too() {
    let mut world = World::new(3);
    let limits = MemberSet::new(ids(3), MAX_TTL, TOLERANCE * 2);
    world.trust = Trust::new(ids(3), limits, true);
    world.meet_all();
    assert!(matches!(world.counts(1), Err(Distrust::OtherSet { .. })));
}

#[test]
fn a_set_that_grew_or_had_a_member_replaced_counts_under_its_new_card() {
    let mut world = World::new(5);
    for server in &mut world.servers {
        server.card.as_mut().unwrap().generation = 3;
    }
    // The newcomer brought a life that nobody has heard of.
    let life = Life::parse("00000000000000ff").unwrap();
    world.servers[4].card.as_mut().unwrap().life = life;
    for member in 0..4 {
        let card = world.servers[member].card.as_mut().unwrap();
        card.sightings.remove(&MemberId::new("m4"));
    }
    world.meet_all();
    world.all_count();
    world.keep_cards();
    world.all_count();
    assert!(world.servers[0].card.as_ref().unwrap().sightings[&MemberId::new("m4")].life == life);
}

#[test]
fn one_server_under_two_names_counts_under_neither() {
    let mut world = World::new(3);
    world.servers[1].run = world.servers[0].run;
    world.meet_all();
    assert_eq!(
        world.counts(0),
        Err(Distrust::SameServer(MemberId::new("m1")))
    );
    assert_eq!(
        world.counts(1),
        Err(Distrust::SameServer(MemberId::new("m0")))
    );
}

#[test]
fn a_clock_stepped_between_two_answers_is_out_for_one_max_ttl() {
    let mut world = World::new(3);
    world.meet_all();
    for (member, by) in [(1, 3), (2, -3)] {
        world.pass(5);
        world.step(member, by);
        world.meet(member);
        let Err(Distrust::Clock {
            what: ClockFault::Stepped(skew),
            until,
        }) = world.counts(member)
        else {
            panic!("m{member}: {:?}", world.counts(member));
        };
        assert_eq!(skew.span().as_millis().div_ceil(100), 30, "{skew}");
        assert_eq!(until, world.ours() + MAX_TTL);
        // Back in step at once, it is out all the same.
        world.step(member, -by);
        world.pass(59);
        assert!(world.counts(member).is_err());
        world.pass(2);
        assert_eq!(world.counts(member), Ok(()));
        world.meet_all();
        world.pass(61);
        world.meet_all();
    }
}

#[test]
fn a_new_client_finds_the_stepped_clock_by_the_median() {
    let mut world = World::new(5);
    world.step(3, 2);
    world.meet(3);
    world.meet(0);
    assert_eq!(world.counts(3), Ok(()), "nobody knows yet");
    world.meet(1);
    let text = world.counts(3).unwrap_err().to_string();
    assert_eq!(text, "its clock is 2.0s ahead of the other members'");
    assert_eq!(world.counts(0), Ok(()));
}

#[test]
fn of_two_that_differ_neither_is_blamed_for_long() {
    let mut world = World::new(3);
    world.step(1, 2);
    world.meet(0);
    world.meet(1);
    assert_eq!(
        [0, 1].iter().filter(|m| world.counts(**m).is_err()).count(),
        0,
        "asked from now on"
    );
    let earlier = world.ours() - Duration::from_millis(1);
    let counted = |member: usize| world.trust.counts(member, earlier, None).is_ok();
    assert_eq!(
        usize::from(counted(0)) + usize::from(counted(1)),
        1,
        "no majority"
    );
    world.meet(2);
    assert!(world.counts(1).is_err());
    assert_eq!((world.counts(0), world.counts(2)), (Ok(()), Ok(())));
}

#[test]
fn a_client_that_was_idle_with_a_drifting_clock_distrusts_nobody() {
    let mut world = World::new(5);
    world.meet_all();
    for seconds in [1, 9, 59, 3_600, 86_400] {
        world.pass(seconds);
        // 100 parts in a million.
        world.behind += seconds * 100;
        world.meet_all();
        world.all_count();
    }
}

#[test]
fn a_machine_that_was_suspended_unnoticed_is_told_so_and_distrusts_nobody() {
    let mut world = World::new(5);
    world.meet_all();
    world.pass(3);
    // The machine stands still for 40 s, and its clock with it.
    world.pass(40);
    world.behind += 40 * SECOND as i64;
    assert_eq!(world.meet(0).stood_still, None);
    assert_eq!(world.meet(1).stood_still, None);
    assert!(
        world.counts(0).is_err(),
        "as yet it is the member that is out of step"
    );
    let found = world
        .meet(2)
        .stood_still
        .expect("a majority moved together");
    assert!((39..=40).contains(&found.as_secs()), "{found:?}");
    world.behind -= found.as_micros() as i64;
    world.all_count();
    world.pass(1);
    for member in 0..5 {
        assert_eq!(world.meet(member).stood_still, None);
    }
    world.all_count();
}

#[test]
fn an_answer_of_other_data_than_the_known_ones_does_not_count() {
    let mut world = World::new(3);
    world.meet_all();
    let known = world.presence(1).incarnation();
    assert_eq!(world.trust.counts(1, world.ours(), Some(&known)), Ok(()));
    world.servers[1].card = None;
    let flushed = Sample {
        clock: world.wall(1),
        incarnation: world.presence(1).incarnation(),
    };
    let learned = world.trust.sample(1, &flushed, world.at());
    assert!(learned.must_look);
    let verdict = world
        .trust
        .counts(1, world.ours(), Some(&flushed.incarnation));
    assert_eq!(verdict, Err(Distrust::Changed));
}

#[test]
fn rules_that_are_not_enforced_count_everybody() {
    let mut world = World::new(3);
    world.trust = Trust::new(ids(3), set(3), false);
    assert_eq!(world.counts(0), Ok(()));
    assert_eq!(world.trust.card_steps(&mut || unreachable!()), []);
}
