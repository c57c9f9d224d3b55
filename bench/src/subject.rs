/// A way to take a lock, as it is set beside the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    /// As in the tables.
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    /// `default`, or the delay between two attempts in milliseconds.
    pub(crate) settings: &'static str,
    nodes: Nodes,
}

/// What runs a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// The worker of this program, with the part of this name.
    Own(&'static str),
    Node,
    Python,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nodes {
    One,
    Several,
    Any,
}

/// The one that the others are set against.
pub(crate) const LEASEHOLD: &str = "leasehold";

/// The one that bounds what a library can reach on one server.
pub(crate) const BOUND: &str = "BLPOP, bare sockets";

/// The part of the worker whose key is there while the lock is free, not while it is held.
const BARE: Program = Program::Own("bare");

/// The delays are those at which each library handed over fastest in a search of its own: a shorter
/// one only costs more.
const SUBJECTS: [Subject; 10] = [
    subject(BOUND, BARE, "default", Nodes::One),
    subject(LEASEHOLD, Program::Own("leasehold"), "default", Nodes::Any),
    subject(
        "leasehold, a client each",
        Program::Own("leasehold-each"),
        "default",
        Nodes::Any,
    ),
    subject("rslock", Program::Own("rslock"), "default", Nodes::Any),
    subject("rslock, 2 ms", Program::Own("rslock"), "2", Nodes::One),
    subject("rslock, 4 ms", Program::Own("rslock"), "4", Nodes::Several),
    subject("node-redlock", Program::Node, "default", Nodes::Any),
    subject("node-redlock, 2 ms", Program::Node, "2", Nodes::Any),
    subject("redis-py", Program::Python, "default", Nodes::One),
    subject("redis-py, 2 ms", Program::Python, "2", Nodes::One),
];

const fn subject(
    name: &'static str,
    program: Program,
    settings: &'static str,
    nodes: Nodes,
) -> Subject {
    Subject {
        name,
        program,
        settings,
        nodes,
    }
}

impl Subject {
    /// Those that can use as many servers as `nodes`.
    pub(crate) fn all(nodes: usize) -> impl Iterator<Item = Self> {
        SUBJECTS
            .into_iter()
            .filter(move |subject| match subject.nodes {
                Nodes::One => nodes == 1,
                Nodes::Several => nodes > 1,
                Nodes::Any => true,
            })
    }

    pub(crate) fn key_is_free(&self) -> bool {
        self.program == BARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leasehold_is_always_there_and_names_are_given_once() {
        for nodes in [1, 3, 5] {
            let mut names: Vec<&str> = Subject::all(nodes).map(|subject| subject.name).collect();
            assert!(names.contains(&LEASEHOLD));
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count);
        }
        assert!(Subject::all(5).all(|subject| !subject.key_is_free()));
    }
}
