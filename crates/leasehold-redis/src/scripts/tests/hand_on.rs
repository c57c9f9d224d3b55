//! A release and the attempt behind it in one step, beside both one after the other.

use leasehold_testkit::servers::Reply;

use super::super::{ACQUIRE_IN_TURN, HAND_ON};
use super::world::{FENCE_AT, KEYS, LOCK, Maker, QUEUE_AT};
use super::{
    Deed, IN_TURN_ALONE, LEFT, Scene, WORLDS, assert_both_are_usual, assert_same, without, words,
};

const HAND_ON_ALONE: &str = include_str!("../../lua/hand_on_alone.lua");
const HAND_ON_END: &str = include_str!("../../lua/hand_on_end.lua");

/// Whoever is handed the lock at once leaves the rest of the counter as the holder set it, and the end of
/// the queue as those who wait did.
fn as_they_were(short: &Deed, general: &mut Deed) {
    for at in [FENCE_AT, QUEUE_AT] {
        general.left[at] = short.left[at];
    }
}

#[test]
fn a_short_release_with_an_attempt_behind_it_is_that_of_the_general_script() {
    let mut scene = Scene::new();
    let shipped = scene.load(HAND_ON.text());
    let general = without(&without(HAND_ON.text(), HAND_ON_ALONE), IN_TURN_ALONE);
    let general = scene.load(&general);
    let (short, _) = HAND_ON.text().split_once(IN_TURN_ALONE).unwrap();
    let alone = scene.load(&format!("{short}\nreturn '{LEFT}'\nend\n{HAND_ON_END}"));
    let mut left = 0;
    for seed in 0..WORLDS {
        let world = Maker::new(seed, scene.now_ms()).succession();
        let arguments = words(&world.arguments);
        let short = scene.run(&world, &shipped, &KEYS, &arguments);
        let mut long = scene.run(&world, &general, &KEYS, &arguments);
        as_they_were(&short, &mut long);
        assert_same(&short, &long, seed, &world);
        let by_itself = scene.run(&world, &alone, &KEYS, &arguments);
        left += u64::from(format!("{:?}", by_itself.answer).contains(LEFT));
    }
    assert_both_are_usual(left);
}

#[test]
fn both_in_one_step_leave_what_one_after_the_other_does() {
    let mut scene = Scene::new();
    let (releasing, _) = HAND_ON
        .text()
        .split_once("local function attempt()")
        .unwrap();
    let releasing = scene.load(&format!("{releasing}\nreturn freed\n"));
    let asking = scene.load(ACQUIRE_IN_TURN.text());
    let both = scene.load(HAND_ON.text());
    for seed in 0..WORLDS {
        let mut world = Maker::new(seed, scene.now_ms()).succession();
        let arguments = world.arguments.clone();
        let arguments = words(&arguments);
        let short = scene.run(&world, &both, &KEYS, &arguments);
        let freed = scene.run(&world, &releasing, &KEYS, &arguments);
        assert_eq!(freed.said, []);
        if freed.answer == Reply::Integer(1) {
            world.commands.push(["DEL", LOCK].map(str::to_owned).into());
        }
        let mut long = scene.run(&world, &asking, &KEYS, &arguments[..6]);
        long.answer = Reply::Array(vec![freed.answer, long.answer]);
        as_they_were(&short, &mut long);
        assert_same(&short, &long, seed, &world);
    }
}
