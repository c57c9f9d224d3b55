/// A hot path: what is done over and over, and how often for one figure.
#[derive(Debug, PartialEq, Eq)]
pub struct Path {
    /// On the command line, and in the file of counts.
    pub name: &'static str,
    /// How many Redis servers it talks to.
    pub servers: usize,
    /// How many cycles the shorter run has; the longer one has twice as many. What both have besides
    /// cycles cancels out.
    pub cycles: u32,
    /// Whether it is guarded.
    pub kind: Kind,
    /// For people.
    pub what: &'static str,
}

/// Whose path it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of ours: compared with its recorded count.
    Guarded,
    /// Of others: what the server needs at least, for comparison. Counted on request.
    Bound,
}

/// All there are.
pub const PATHS: [Path; 11] = [
    ours("memory", 0, 2000, "acquire and release on the memory store"),
    ours("redis", 1, 400, "the same on one Redis, one at a time"),
    ours("redis-64", 1, 1280, "the same with 64 in flight"),
    ours("redis-5", 5, 200, "the same on five Redis, one at a time"),
    ours("redis-5-64", 5, 640, "the same with 64 in flight"),
    ours(
        "thread",
        1,
        400,
        "as redis, from a thread that is not the client's own",
    ),
    ours(
        "renewal",
        1,
        5000,
        "a renewal of one of 1,000 held locks on one Redis",
    ),
    ours(
        "hand-over",
        1,
        60,
        "from release to the next of two clients, one Redis",
    ),
    bound(
        "raw-redis",
        1,
        400,
        "SET NX PX and compare-and-delete by the redis crate",
    ),
    bound("raw-redis-64", 1, 1280, "the same with 64 in flight"),
    bound(
        "raw-redis-5-64",
        5,
        640,
        "the same, each on all of five Redis at once",
    ),
];

const fn ours(name: &'static str, servers: usize, cycles: u32, what: &'static str) -> Path {
    Path {
        name,
        servers,
        cycles,
        kind: Kind::Guarded,
        what,
    }
}

const fn bound(name: &'static str, servers: usize, cycles: u32, what: &'static str) -> Path {
    Path {
        kind: Kind::Bound,
        ..ours(name, servers, cycles, what)
    }
}

impl Path {
    /// The path of that name.
    ///
    /// # Errors
    ///
    /// There is none; the text names all.
    pub fn named(name: &str) -> Result<&'static Self, String> {
        let found = PATHS.iter().find(|path| path.name == name);
        found.ok_or_else(|| {
            let all: Vec<&str> = PATHS.iter().map(|path| path.name).collect();
            format!("there is no path {name:?}, but {}", all.join(", "))
        })
    }
}
