//! The error codes of servers, and what each means for the client: the only place that sorts them.

/// Why a server refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) i32);

/// What follows from a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The state of a node, which callers expect and handle.
    Node,
    /// The same request fails again, until an operator changes something.
    Refused,
    /// The same request may succeed soon, so a wait goes on.
    NotReady,
    /// The connection no longer has the session, or no longer serves it.
    Lost,
}

use Meaning::{Lost, Node, NotReady, Refused};

/// All codes of ZooKeeper 3.9. Those that only requests lead to that this client does not send count as refused.
pub(super) const CODES: [(i32, Meaning, &str); 31] = [
    (-1, NotReady, "the server fails"),
    (-2, Refused, "the server finds its state inconsistent"),
    (-3, Refused, "the server finds its data inconsistent"),
    (-4, Lost, "the server lost its connection to the leader"),
    (
        -5,
        Refused,
        "the server cannot read or carry out the request",
    ),
    (-6, Refused, "the server does not know the request"),
    (-7, NotReady, "the server took too long"),
    (-8, Refused, "the server rejects an argument"),
    (-12, Lost, "the server does not know the session"),
    (
        -13,
        NotReady,
        "no quorum of the new configuration is connected",
    ),
    (-14, NotReady, "the ensemble is changing its members"),
    (-100, Refused, "the server refuses"),
    (-101, Node, "no such node"),
    (-102, Refused, "the login has no right to it"),
    (-103, Node, "the node has changed"),
    (-108, Refused, "an ephemeral node has no children"),
    (-110, Node, "the node exists"),
    (-111, Node, "the node has children"),
    (-112, Lost, "the session has expired"),
    (-113, Refused, "the server rejects a callback"),
    (
        -114,
        Refused,
        "the rights of the new node are invalid: the connection has no login",
    ),
    (-115, Refused, "the login failed"),
    (-118, Lost, "the session has moved to another server"),
    (-119, Lost, "the server is read-only: it has no quorum"),
    (
        -120,
        Refused,
        "the server offers local sessions without locks; set localSessionsUpgradingEnabled=true",
    ),
    (-121, Refused, "the server has no such watch"),
    (-122, NotReady, "the server did not answer in time"),
    (-123, Refused, "the ensemble cannot change its members"),
    (
        -124,
        Refused,
        "the server demands a login by SASL, which this client does not offer",
    ),
    (-125, NotReady, "the quota of the path is used up"),
    (-127, NotReady, "the server is overloaded"),
];

impl Code {
    pub(crate) const NO_NODE: Self = Self(-101);
    pub(crate) const NO_AUTH: Self = Self(-102);
    pub(crate) const BAD_VERSION: Self = Self(-103);
    pub(crate) const NODE_EXISTS: Self = Self(-110);

    fn entry(self) -> (Meaning, &'static str) {
        let known = CODES.iter().find(|(code, ..)| *code == self.0);
        known.map_or((Refused, "the server refuses"), |(_, meaning, name)| {
            (*meaning, name)
        })
    }

    /// Returns what follows from the code. No repetition helps against an unknown one.
    pub(crate) fn meaning(self) -> Meaning {
        self.entry().0
    }

    pub(crate) fn name(self) -> &'static str {
        self.entry().1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_one_meaning() {
        assert!(CODES.is_sorted_by(|(a, ..), (b, ..)| a > b));
        for (code, meaning, name) in CODES {
            assert_eq!(Code(code).meaning(), meaning);
            assert_eq!(Code(code).name(), name);
        }
        assert_eq!(Code(-999).meaning(), Refused);
        for node in [Code::NO_NODE, Code::BAD_VERSION, Code::NODE_EXISTS] {
            assert_eq!(node.meaning(), Node);
        }
    }
}
