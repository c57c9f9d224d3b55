//! The short scripts for the usual hand-over, beside the general ones: in whatever they find, they
//! answer the same, leave the same, and say the same to the same clients.

mod hand_on;
mod in_memory;
mod world;

use std::time::Duration;

use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use leasehold_testkit::servers::{RedisServer, Reply, RespConnection};

use self::world::{
    CLIENTS, HEARING, KEYS, LOCK, Maker, OFFERED, QUEUE, READERS, UNHEARD_BY_USER, World, client,
};
use super::{ACQUIRE_IN_TURN, DEPART};

const WORLDS: u64 = 1000;

const RELEASE_ALONE: &str = include_str!("../lua/release_alone.lua");
const HAND_OVER_ALONE: &str = include_str!("../lua/hand_over_alone.lua");
const IN_TURN_ALONE: &str = include_str!("../lua/in_turn_alone.lua");

const LEASE: &str = include_str!("../lua/lease.lua");

/// What a short script that stands for itself answers where it leaves all to the general one.
const LEFT: &str = "left to the general script";

const OVER: &str = "over";

impl Deed {
    /// Reads the answers to [`commands`].
    fn new(
        world: &World,
        mut answers: Vec<Reply>,
        said: Vec<Reply>,
        [began, ended]: [BootInstant; 2],
    ) -> Self {
        let answer_at = 1 + world.commands.len();
        let data = answers.split_off(answer_at + 1 + KEYS.len());
        let left = answers.split_off(answer_at + 1);
        let left = left.iter().map(|left| match left {
            Reply::Integer(left) => *left,
            other => panic!("{other:?}"),
        });
        let mut left: Vec<i64> = left.collect();
        let mut answer = plain(answers.pop().unwrap());
        left.extend(taken_time(&mut answer));
        Self {
            answer,
            data: data.into_iter().map(plain).collect(),
            left,
            said,
            began,
            ended,
        }
    }
}

/// Makes this world, calls the script in it, and looks at what it left.
fn commands<'a>(
    world: &'a World,
    sha1: &'a str,
    keys: &[&'a str],
    arguments: &[&'a str],
) -> Vec<Vec<&'a str>> {
    const COUNTS: [&str; 7] = ["0", "1", "2", "3", "4", "5", "6"];
    let call = [&["EVALSHA", sha1, COUNTS[keys.len()]], keys, arguments].concat();
    let mut commands = vec![[&["DEL"], &KEYS[..]].concat()];
    let made = world.commands.iter();
    commands.extend(made.map(|words| words.iter().map(String::as_str).collect()));
    commands.push(call);
    commands.extend(KEYS.map(|key| vec!["PTTL", key]));
    for key in KEYS {
        commands.push(vec!["GET", key]);
        commands.push(vec!["ZRANGE", key, "0", "-1", "WITHSCORES"]);
    }
    commands
}

/// A server, and all who are heard and hear there.
struct Scene {
    /// Its clock stands still for the scripts: they are told this instant.
    now: Duration,
    all: RespConnection,
    limited: RespConnection,
    hearing: RespConnection,
    /// The server ends with the test.
    _server: RedisServer,
}

/// What a call did.
#[derive(Debug)]
struct Deed {
    answer: Reply,
    data: Vec<Reply>,
    /// How long each record lasts, in ms, and what the answer says of the lock.
    left: Vec<i64>,
    said: Vec<Reply>,
    began: BootInstant,
    ended: BootInstant,
}

impl Scene {
    fn new() -> Self {
        let server = RedisServer::start();
        let open = || RespConnection::open(server.port()).unwrap();
        let (mut all, mut limited, mut hearing) = (open(), open(), open());
        let heard = (0..CLIENTS).filter(|number| *number != UNHEARD_BY_USER);
        let channels = heard.map(|number| format!("&{}", inbox(number)));
        let channels: Vec<String> = channels.collect();
        let mut rules = vec!["ACL", "SETUSER", "limited", "on", ">secret", "~*", "+@all"];
        rules.push("resetchannels");
        rules.extend(channels.iter().map(String::as_str));
        let over = format!("&{OVER}");
        rules.push(&over);
        assert_eq!(all.call(&rules).unwrap(), Reply::Status("OK".into()));
        let login = limited.call(&["AUTH", "limited", "secret"]).unwrap();
        assert_eq!(login, Reply::Status("OK".into()));
        for channel in (0..HEARING).map(inbox).chain([OVER.to_owned()]) {
            let subscribed = hearing.call(&["SUBSCRIBE", &channel]).unwrap();
            assert!(matches!(subscribed, Reply::Array(_)), "{subscribed:?}");
        }
        let now = Duration::from_micros(SystemClock.wall().as_micros());
        Self {
            now,
            all,
            limited,
            hearing,
            _server: server,
        }
    }

    fn now_ms(&self) -> u64 {
        self.now.as_millis() as u64
    }

    /// The script with its clock standing still.
    fn at_this_instant(&self, text: &str) -> String {
        let time = format!(
            "{{'{}', '{}'}}",
            self.now.as_secs(),
            self.now.subsec_micros()
        );
        let text = text.replace("redis.call('TIME')", &time);
        assert!(!text.contains("'TIME'"), "the clock is read in another way");
        text
    }

    /// Makes the script known, with its clock standing still.
    fn load(&mut self, text: &str) -> String {
        let text = self.at_this_instant(text);
        match self.all.call(&["SCRIPT", "LOAD", &text]).unwrap() {
            Reply::Bulk(sha1) => sha1,
            refused => panic!("{refused:?}"),
        }
    }

    /// Runs the script in this world, all in one transaction.
    fn run(&mut self, world: &World, sha1: &str, keys: &[&str], arguments: &[&str]) -> Deed {
        let mut commands = commands(world, sha1, keys, arguments);
        commands.push(vec!["PUBLISH", OVER, ""]);
        let connection = if world.tells_all {
            &mut self.all
        } else {
            &mut self.limited
        };
        let began = SystemClock.now();
        let mut answers = in_one_step(connection, &commands);
        let ended = SystemClock.now();
        answers.pop();
        let said = self.said();
        Deed::new(world, answers, said, [began, ended])
    }

    /// What was said until the call was over.
    fn said(&mut self) -> Vec<Reply> {
        let mut said = Vec::new();
        loop {
            let word = self.hearing.receive().unwrap();
            let is_over =
                matches!(&word, Reply::Array(parts) if parts[1] == Reply::Bulk(OVER.into()));
            if is_over {
                return said;
            }
            said.push(word);
        }
    }
}

fn inbox(number: u64) -> String {
    format!("leasehold:inbox:{}", client(number))
}

fn in_one_step(connection: &mut RespConnection, commands: &[Vec<&str>]) -> Vec<Reply> {
    connection.send(&["MULTI"]).unwrap();
    for command in commands {
        connection.send(command).unwrap();
    }
    connection.send(&["EXEC"]).unwrap();
    for _ in 0..=commands.len() {
        let queued = connection.receive().unwrap();
        assert!(matches!(queued, Reply::Status(_)), "{queued:?}");
    }
    match connection.receive().unwrap() {
        Reply::Array(answers) => answers,
        refused => panic!("{refused:?}"),
    }
}

/// Without the name of the script and the line, which the server puts behind an error.
fn plain(reply: Reply) -> Reply {
    let cut = |text: String| match text.split_once(" script: ") {
        Some((error, _)) => error.to_owned(),
        None => text,
    };
    match reply {
        Reply::Error(text) => Reply::Error(cut(text)),
        Reply::Bulk(text) => Reply::Bulk(cut(text)),
        Reply::Array(parts) => Reply::Array(parts.into_iter().map(plain).collect()),
        other => other,
    }
}

/// How long who is refused the lock has to wait: the rest of what an attempt answers goes without it.
fn taken_time(answer: &mut Reply) -> Option<i64> {
    let Reply::Array(parts) = answer else {
        return None;
    };
    match parts.as_mut_slice() {
        [Reply::Integer(0), _, _, Reply::Integer(left), ..] => Some(std::mem::take(left)),
        [_, attempt @ Reply::Array(_)] => taken_time(attempt),
        _ => None,
    }
}

/// `text` without `part`, which it has once.
fn without(text: &str, part: &str) -> String {
    assert_eq!(text.matches(part).count(), 1, "it is a part of the script");
    text.replace(part, "")
}

/// What stands in front of the general script, and says whether anything is left to that.
fn alone(text: &str) -> String {
    let (short, _) = text.split_once(LEASE).unwrap();
    format!("{short}\nreturn '{LEFT}'\n")
}

fn assert_same(short: &Deed, general: &Deed, seed: u64, world: &World) {
    assert_eq!(short.answer, general.answer, "seed {seed}: {world:#?}");
    assert_eq!(short.data, general.data, "seed {seed}: {world:#?}");
    let in_vain = said_in_vain(short, general);
    assert!(
        in_vain.is_some_and(|words| words.iter().all(is_soon)),
        "seed {seed}: {:?} {:?} {world:#?}",
        short.said,
        general.said
    );
    // The time goes on between what a script sets and the look at it, and between both; no record is set
    // to an end so near to that of another kind.
    let late = general.ended.since(short.began).as_millis() as u64 + 1;
    assert_eq!(short.left.len(), general.left.len());
    for (at, (short, general)) in short.left.iter().zip(&general.left).enumerate() {
        let key = KEYS.get(at).unwrap_or(&"in the answer the lock");
        let is_same = match (short, general) {
            (0.., 0..) => short.abs_diff(*general) <= late,
            _ => short == general,
        };
        assert!(
            is_same,
            "seed {seed}: {key} lasts {short} or {general} ms: {world:#?}"
        );
    }
}

/// What the short script said beyond the general one, in whatever order; `None` if it kept something back.
fn said_in_vain<'a>(short: &'a Deed, general: &Deed) -> Option<Vec<&'a Reply>> {
    let mut said: Vec<&Reply> = short.said.iter().collect();
    for word in &general.said {
        let at = said.iter().position(|other| *other == word)?;
        said.remove(at);
    }
    Some(said)
}

/// To stand in for a head that then turns out to be gone.
fn is_soon(word: &&Reply) -> bool {
    matches!(word, Reply::Array(parts)
        if matches!(parts.last(), Some(Reply::Bulk(said)) if said.starts_with("soon ")))
}

/// Worlds of both kinds were made up: those that are left to the general script, and the others.
fn assert_both_are_usual(left: u64) {
    let done = WORLDS - left;
    assert!(
        left > WORLDS / 10,
        "{left} worlds of {WORLDS} were left to the general script"
    );
    assert!(
        done > WORLDS / 10,
        "{done} worlds of {WORLDS} needed the short one alone"
    );
}

fn words(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

#[test]
fn a_short_end_of_a_lease_is_that_of_the_general_script() {
    let mut scene = Scene::new();
    let shipped = scene.load(DEPART.text());
    let general = without(&without(DEPART.text(), RELEASE_ALONE), HAND_OVER_ALONE);
    let general = scene.load(&general);
    let alone = scene.load(&alone(DEPART.text()));
    let mut left = 0;
    for seed in 0..WORLDS {
        let world = Maker::new(seed, scene.now_ms()).departure();
        let arguments = words(&world.arguments);
        let (keys, given) = match arguments[..] {
            ["exclusive", owner, "hand over"] => (vec![LOCK, QUEUE, READERS, OFFERED], vec![owner]),
            _ => (KEYS[..5].to_vec(), arguments.clone()),
        };
        let short = scene.run(&world, &shipped, &keys, &given);
        let long = scene.run(&world, &general, &KEYS[..5], &arguments);
        assert_same(&short, &long, seed, &world);
        let by_itself = scene.run(&world, &alone, &keys, &given);
        left += u64::from(by_itself.answer == Reply::Bulk(LEFT.into()));
    }
    assert_both_are_usual(left);
}

#[test]
fn a_short_attempt_in_turn_is_that_of_the_general_script() {
    let mut scene = Scene::new();
    let shipped = scene.load(ACQUIRE_IN_TURN.text());
    let general = scene.load(&without(ACQUIRE_IN_TURN.text(), IN_TURN_ALONE));
    let alone = scene.load(&alone(ACQUIRE_IN_TURN.text()));
    let mut left = 0;
    for seed in 0..WORLDS {
        let world = Maker::new(seed, scene.now_ms()).attempt();
        let arguments = words(&world.arguments);
        let short = scene.run(&world, &shipped, &KEYS, &arguments);
        let long = scene.run(&world, &general, &KEYS, &arguments);
        assert_same(&short, &long, seed, &world);
        let by_itself = scene.run(&world, &alone, &KEYS, &arguments);
        left += u64::from(by_itself.answer == Reply::Bulk(LEFT.into()));
    }
    assert_both_are_usual(left);
}
