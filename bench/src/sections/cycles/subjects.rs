use crate::measure::subject::Nodes::{Any, One, Several};
use crate::measure::subject::Program::{Node, Own, Python};
use crate::measure::subject::{LEASEHOLD, PYTHON_REDIS_LOCK, Subject};

/// The reference for the others: the same client library, and nothing else.
pub(super) const REFERENCE: &str = "redis crate";

const SUBJECTS: [Subject; 14] = [
    Subject::peer("bare sockets", Own("bare-pipeline"), "default", Any).as_bound(),
    Subject::peer(REFERENCE, Own("crate-all"), "multi", Any).as_bound(),
    Subject::peer(MAJORITY, Own("crate-majority"), "multi", Several).as_bound(),
    Subject::peer("redis crate, one thread", Own("crate-all"), "default", Any).as_bound(),
    Subject::ours(LEASEHOLD, "leasehold", "multi"),
    Subject::ours("leasehold, one thread", "leasehold", "default"),
    Subject::peer("rslock", Own("rslock"), "multi", Any),
    Subject::peer("redlock (crate)", Own("redlock"), "default", Any),
    Subject::peer("node-redlock", Node("redlock"), "default", Any),
    Subject::peer("ioredis", Node("ioredis"), "default", One).as_bound(),
    Subject::peer("redis-py", Python("redis-py"), "default", One),
    Subject::peer("pottery", Python("pottery"), "default", Any).prefixed("redlock:"),
    PYTHON_REDIS_LOCK,
    Subject::peer("rslock, one thread", Own("rslock"), "default", Any),
];
const MAJORITY: &str = "redis crate, majority";

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
