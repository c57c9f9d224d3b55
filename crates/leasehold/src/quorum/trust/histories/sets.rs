//! Sets that are formed, changed and mistaken.

use super::*;

#[test]
fn a_set_that_stands_counts_at_once_for_a_new_client() {
    let mut world = World::new(5);
    assert_eq!(world.counts(0), Err(Distrust::Unknown));
    world.meet_all();
    world.all_count();
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

#[test]
fn of_two_lists_that_begin_at_once_none_is_formed() {
    let mut world = World::new(4);
    for server in &mut world.servers {
        server.card = None;
    }
    let lists = [[0, 1, 2], [0, 1, 3]];
    let client = |list: [usize; 3]| {
        let ids = list.map(|n| MemberId::new(format!("m{n}")));
        let set = MemberSet::new(ids.clone(), MAX_TTL, TOLERANCE);
        Trust::new(ids.to_vec(), set, true)
    };
    let mut clients = lists.map(client);
    let meet = |world: &World, clients: &mut [Trust; 2]| {
        for (trust, list) in clients.iter_mut().zip(lists) {
            for (place, server) in list.into_iter().enumerate() {
                trust.present(place, world.presence(server), world.at());
            }
        }
    };
    meet(&world, &mut clients);
    // Each is the first at one of the two members that both lists have.
    let mut lives = 0xa0;
    for (trust, writes) in clients.iter().zip([[1, 2], [0, 3]]) {
        let list = if writes[1] == 2 { lists[0] } else { lists[1] };
        let steps = trust.card_steps(&mut || {
            lives += 1;
            Life::parse(&format!("{lives:016x}")).unwrap()
        });
        for step in steps {
            let CardStep::Write(place, edit) = step else {
                panic!("{step:?}")
            };
            if writes.contains(&list[place]) {
                world.write(list[place], edit);
            }
        }
    }
    world.pass(3_600);
    meet(&world, &mut clients);
    for trust in &clients {
        assert!((0..3).all(|place| trust.counts(place, world.ours(), None).is_err()));
        assert_eq!(
            trust.card_steps(&mut || panic!("nothing is to be restored")),
            []
        );
    }
}
