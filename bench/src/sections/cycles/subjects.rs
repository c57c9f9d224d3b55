use crate::measure::subject::Nodes::{Any, One, Several};
use crate::measure::subject::Program::{Node, Own, Python};
use crate::measure::subject::{LEASEHOLD, Subject};
use crate::report::charts::Role::{Bound, Ours, Peer};

/// The reference for the others: the same client library, and nothing else.
pub(super) const REFERENCE: &str = "redis crate";

const SUBJECTS: [Subject; 14] = [
    Subject::new(Bound, "bare sockets", Own("bare-pipeline"), "default", Any),
    Subject::new(Bound, REFERENCE, Own("crate-all"), "multi", Any),
    Subject::new(
        Bound,
        "redis crate, majority",
        Own("crate-majority"),
        "multi",
        Several,
    ),
    Subject::new(
        Bound,
        "redis crate, one thread",
        Own("crate-all"),
        "default",
        Any,
    ),
    Subject::new(Ours, LEASEHOLD, Own("leasehold"), "multi", Any),
    Subject::new(
        Ours,
        "leasehold, one thread",
        Own("leasehold"),
        "default",
        Any,
    ),
    Subject::new(Peer, "rslock", Own("rslock"), "multi", Any),
    Subject::new(Peer, "redlock (crate)", Own("redlock"), "default", Any),
    Subject::new(Peer, "node-redlock", Node("redlock"), "default", Any),
    Subject::new(Bound, "ioredis", Node("ioredis"), "default", One),
    Subject::new(Peer, "redis-py", Python("redis-py"), "default", One),
    Subject::new(Peer, "pottery", Python("pottery"), "default", Any).prefixed("redlock:"),
    Subject::new(
        Peer,
        "python-redis-lock",
        Python("python-redis-lock"),
        "default",
        One,
    )
    .prefixed("lock:"),
    Subject::new(Peer, "rslock, one thread", Own("rslock"), "default", Any),
];

/// Returns the subjects that can use `nodes` servers and keep up with `in_flight` cycles.
pub(super) fn all(nodes: usize, in_flight: usize) -> impl Iterator<Item = Subject> {
    let fits = move |subject: &Subject| {
        subject.fits(nodes)
            && (in_flight <= 64 || matches!(subject.program, Own(part) if part != "redlock"))
    };
    SUBJECTS.into_iter().filter(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leasehold_and_its_bound_are_always_there() {
        for (nodes, in_flight) in [(1, 1), (5, 64), (5, 512)] {
            let names: Vec<&str> = all(nodes, in_flight).map(|subject| subject.name).collect();
            assert!(
                names.contains(&LEASEHOLD) && names.contains(&REFERENCE),
                "{names:?}"
            );
        }
    }
}
