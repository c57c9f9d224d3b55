//! Today's scripts on the server in memory, compared with the same on a real one.

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_fakeredis::{ConnectionId, FakeRedis, Reply as FakeReply};
use leasehold_testkit::servers::Reply;

use super::super::{ACQUIRE_IN_TURN, DEPART, HAND_ON};
use super::world::{HEARING, KEYS, Maker, World};
use super::{Deed, Scene, assert_same, commands, inbox, words};

/// How many worlds are made up for each script.
const WORLDS: u64 = 400;

/// A server in memory, and its clients.
struct InMemory {
    server: FakeRedis,
    /// What a real server's clock says.
    now_us: u64,
    asking: ConnectionId,
    hearing: ConnectionId,
}

impl InMemory {
    fn new() -> Self {
        let now_us = SystemClock.wall().as_micros();
        let mut server = FakeRedis::new(1, now_us);
        let (asking, hearing) = (server.connect(), server.connect());
        for channel in (0..HEARING).map(inbox) {
            server.execute(now_us, hearing, &["SUBSCRIBE", &channel]);
        }
        Self {
            server,
            now_us,
            asking,
            hearing,
        }
    }

    fn call(&mut self, words: &[&str]) -> Reply {
        answer(self.server.execute(self.now_us, self.asking, words))
    }

    fn load(&mut self, text: &str) -> String {
        match self.call(&["SCRIPT", "LOAD", text]) {
            Reply::Bulk(sha1) => sha1,
            refused => panic!("{refused:?}"),
        }
    }

    /// Runs the script as the real server did, but in no time.
    fn run(&mut self, world: &World, sha1: &str, arguments: &[&str], real: &Deed) -> Deed {
        let commands = commands(world, sha1, &KEYS, arguments);
        let answers = commands.iter().map(|words| self.call(words)).collect();
        let said = self.server.take_replies(self.hearing);
        let said = said.into_iter().map(answer).collect();
        Deed::new(world, answers, said, [real.began, real.ended])
    }
}

fn answer(reply: FakeReply) -> Reply {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    match reply.into_resp2() {
        FakeReply::Simple(text) => Reply::Status(text.into()),
        FakeReply::Error(text) => Reply::Error(text.into()),
        FakeReply::Integer(number) => Reply::Integer(number),
        FakeReply::Bulk(bytes) => Reply::Bulk(text(bytes)),
        FakeReply::Nil => Reply::Nil,
        FakeReply::Array(items) => Reply::Array(items.into_iter().map(answer).collect()),
        other => panic!("not RESP2: {other:?}"),
    }
}

#[test]
fn scripts_do_the_same_in_memory() {
    let mut scene = Scene::new();
    let mut in_memory = InMemory::new();
    type Make = fn(Maker) -> World;
    let made: [(&str, Make); 3] = [
        (DEPART.text(), Maker::departure),
        (ACQUIRE_IN_TURN.text(), Maker::attempt),
        (HAND_ON.text(), Maker::succession),
    ];
    for (text, make) in made {
        let real = scene.load(text);
        let fake = in_memory.load(&scene.at_this_instant(text));
        for seed in 0..WORLDS {
            let mut world = make(Maker::new(seed, scene.now_ms()));
            // The server in memory knows no channels that a user may not use.
            world.tells_all = true;
            let arguments = words(&world.arguments);
            let began = SystemClock.now();
            in_memory.now_us = SystemClock.wall().as_micros();
            let mut real = scene.run(&world, &real, &KEYS, &arguments);
            real.began = began;
            let fake = in_memory.run(&world, &fake, &arguments, &real);
            assert_same(&fake, &real, seed, &world);
            assert_eq!(fake.said, real.said, "seed {seed}: {world:#?}");
        }
    }
}
