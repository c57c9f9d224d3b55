use leasehold::env::{Entropy, SystemEntropy};

use super::*;
use crate::queue::node::tests::owner;

fn permits(count: u32) -> Permits {
    Permits::new(count).unwrap()
}

/// Decides for the node with this number, or for a kind that has none yet.
fn decision(queue: &Queue, number: u32) -> String {
    let node = queue
        .nodes()
        .iter()
        .find(|node| node.number == number)
        .unwrap();
    let reader = Reader {
        kind: node.kind,
        number: Some(number),
    };
    shown(queue, &queue.decide(reader, Some(50)))
}

fn shown(queue: &Queue, decision: &Decision) -> String {
    let number = |name: &str| {
        let node = queue.nodes().iter().find(|node| node.name == name);
        node.unwrap().number
    };
    match decision {
        Decision::Take => "take".into(),
        Decision::Ask(node) => format!("ask {}", number(node)),
        Decision::Remove(node) => format!("remove {}", number(node)),
        Decision::WaitFor(node) => format!("wait {}", number(node)),
        Decision::WaitForAny => "any".into(),
        Decision::Differs(of) => format!("differs {of}"),
    }
}

#[test]
fn each_waits_for_the_one_before() {
    for (words, number, expected) in [
        ("w1", 1, "take"),
        ("w1 w2 w3", 3, "wait 2"),
        ("c1 w2", 2, "wait 1"),
        ("r1 w2 r3", 2, "wait 1"),
        ("r1 r2 r3", 3, "take"),
        ("r1 w2 r3", 3, "wait 2"),
        ("w1 r2", 2, "ask 1"),
        ("c1 r2", 2, "wait 1"),
        ("w1 w2 r3", 3, "wait 2"),
        ("p2_1 p2_2 p2_3", 2, "take"),
        ("p2_1 p2_2 p2_3", 3, "any"),
        ("p2_1 p2_2 p2_3 p2_4", 4, "wait 3"),
        ("p2_1 p3_2", 2, "differs 2"),
        ("w1 p2_2 p3_3", 3, "wait 2"),
        ("p2_1 w2 p2_3", 3, "wait 2"),
        ("x90:1 w2", 2, "wait 1"),
        ("x49:1 w2", 2, "remove 1"),
    ] {
        let queue = parsed(words);
        assert_eq!(decision(&queue, number), expected, "{words}");
    }
}

/// Reads words such as `w1 r2 p2b_3 x90:4 c5`: a kind and a number, and something between two numbers. `c` is Curator's.
fn parsed(words: &str) -> Queue {
    let names = words.split_whitespace().map(|word| {
        let (kind, number) = word
            .split_once(['_', ':'])
            .unwrap_or_else(|| word.split_at(word.len() - 1));
        let number: u32 = number.parse().unwrap();
        match kind {
            "c" => format!("_c_x-lock-{number:010}"),
            kind => format!("{}-{kind}-lock-{number:010}", owner(number.into())),
        }
    });
    Queue::read(&names.collect::<Vec<_>>()).unwrap()
}

#[test]
fn barging_goes_past_waiters_only() {
    for (words, number, expected) in [
        ("r1 w2 rb3", 3, "take"),
        ("r1 w2 rb3", 2, "wait 1"),
        ("w2 rb3", 2, "wait 3"),
        ("w2 rb3", 3, "ask 2"),
        ("r1 c2 rb3", 3, "any"),
        ("p2_1 w2 p2b_3", 3, "take"),
        ("p2_1 p2_2 w3 p2b_4", 4, "any"),
        ("p2_1 p2_3 p2b_4", 3, "any"),
        ("p2_1 w2 p3b_3", 3, "differs 2"),
        ("r2 p2b_3 rb4", 4, "any"),
        ("r2 p2b_3", 2, "wait 3"),
    ] {
        assert_eq!(decision(&parsed(words), number), expected, "{words}");
    }
}

#[test]
fn downgraded_holder_lets_readers_in() {
    let mut queue = parsed("w1 r2 w3 rb4");
    let name = queue.nodes()[0].name.clone();
    queue.downgrade(name);
    for (number, expected) in [(2, "take"), (3, "wait 2"), (4, "take")] {
        assert_eq!(decision(&queue, number), expected);
    }
    let holders: Vec<u32> = queue.holders().map(|node| node.number).collect();
    assert_eq!(holders, [1, 2, 4]);
    let waiters: Vec<u32> = queue.waiters().map(|node| node.number).collect();
    assert_eq!(waiters, [3]);
}

#[test]
fn request_without_node_is_last() {
    let ask = |words: &str, kind| {
        let queue = parsed(words);
        shown(&queue, &queue.decide(Reader { kind, number: None }, None))
    };
    let shared = Kind::Shared { barges: false };
    assert_eq!(ask("", Kind::Exclusive), "take");
    assert_eq!(ask("r1 r2", shared), "take");
    assert_eq!(ask("r1 w2", shared), "wait 2");
    assert_eq!(
        ask("x1:1", Kind::Exclusive),
        "wait 1",
        "the time is unknown"
    );
    let of = permits(2);
    assert_eq!(ask("p2_1", Kind::Permit { of, barges: false }), "take");
}

/// Clients that see old states of the queue, take the lock, leave and give up at random. Those that hold never exclude
/// each other.
#[test]
fn holders_agree_though_their_views_are_old() {
    let mut granted = 0;
    for _ in 0..1_000 {
        let mut world = World::default();
        for _ in 0..200 {
            world.step();
            world.check();
        }
        granted += world.granted;
    }
    assert!(granted > 3_000, "{granted} grants");
}

#[derive(Default)]
struct World {
    /// Every state of the folder so far.
    history: Vec<Vec<String>>,
    clients: Vec<Simulated>,
    last: u32,
    granted: usize,
}

struct Simulated {
    node: Node,
    created: usize,
    /// The newest state that it saw.
    seen: usize,
    holds: bool,
}

fn below(limit: usize) -> usize {
    (SystemEntropy.next_u64() % limit as u64) as usize
}

impl World {
    fn now(&self) -> Vec<String> {
        self.history.last().cloned().unwrap_or_default()
    }

    fn step(&mut self) {
        match below(8) {
            0 | 1 if self.clients.len() < 7 => self.enter(),
            2 if !self.clients.is_empty() => {
                let gone = self.clients.swap_remove(below(self.clients.len()));
                let mut names = self.now();
                names.retain(|name| *name != gone.node.name);
                self.history.push(names);
            }
            _ if !self.clients.is_empty() => {
                let client = below(self.clients.len());
                self.look(client);
            }
            _ => {}
        }
    }

    fn enter(&mut self) {
        let kinds = [
            Kind::Exclusive,
            Kind::Shared { barges: false },
            Kind::Shared { barges: true },
            Kind::Permit {
                of: permits(2),
                barges: false,
            },
            Kind::Permit {
                of: permits(2),
                barges: true,
            },
            Kind::Permit {
                of: permits(1),
                barges: false,
            },
        ];
        let kind = kinds[below(kinds.len())];
        self.last += 1;
        let name = format!(
            "{}{:010}",
            Node::prefix(owner(self.last.into()), kind),
            self.last
        );
        let node = Node::parse(&name).unwrap().unwrap();
        let mut names = self.now();
        names.push(name);
        self.history.push(names);
        let created = self.history.len() - 1;
        self.clients.push(Simulated {
            node,
            created,
            seen: created,
            holds: false,
        });
    }

    fn look(&mut self, client: usize) {
        let client = &mut self.clients[client];
        client.seen += below(self.history.len() - client.seen);
        client.seen = client.seen.max(client.created);
        let queue = Queue::read(&self.history[client.seen]).unwrap();
        let reader = Reader {
            kind: client.node.kind,
            number: Some(client.node.number),
        };
        if !client.holds && queue.decide(reader, None) == Decision::Take {
            client.holds = true;
            self.granted += 1;
        }
    }

    fn check(&self) {
        let holders: Vec<&Simulated> = self.clients.iter().filter(|client| client.holds).collect();
        let modes: Vec<Mode> = holders
            .iter()
            .map(|client| client.node.kind.mode())
            .collect();
        let fine = match modes.first() {
            None => true,
            Some(Mode::Exclusive) => modes.len() == 1,
            Some(Mode::Shared) => modes.iter().all(|mode| *mode == Mode::Shared),
            Some(Mode::Permit(of)) => {
                modes.len() <= of.get() as usize && modes.iter().all(|mode| *mode == modes[0])
            }
        };
        let names: Vec<&str> = holders
            .iter()
            .map(|client| client.node.name.as_str())
            .collect();
        assert!(fine, "{names:?} hold together");
    }
}
