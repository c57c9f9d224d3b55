use super::Offence;
use super::source::{Source, has_word};

/// The files of the core that decide and do nothing else: fed answers and instants, they give
/// decisions, so that the same code runs in a simulation and in production.
const FILES: [&str; 21] = [
    "crates/leasehold/src/backoff.rs",
    "crates/leasehold/src/leader/news.rs",
    "crates/leasehold/src/lease.rs",
    "crates/leasehold/src/memory/permits.rs",
    "crates/leasehold/src/memory/queue/mod.rs",
    "crates/leasehold/src/memory/queue/offers.rs",
    "crates/leasehold/src/memory/record_table.rs",
    "crates/leasehold/src/memory/slot.rs",
    "crates/leasehold/src/once_state.rs",
    "crates/leasehold/src/quorum/ballot/mod.rs",
    "crates/leasehold/src/quorum/records/round.rs",
    "crates/leasehold/src/quorum/slots.rs",
    "crates/leasehold/src/quorum/trust/cards.rs",
    "crates/leasehold/src/quorum/trust/clocks.rs",
    "crates/leasehold/src/quorum/trust/lives.rs",
    "crates/leasehold/src/quorum/trust/mod.rs",
    "crates/leasehold/src/quorum/tally.rs",
    "crates/leasehold/src/quorum/waiting/board/mod.rs",
    "crates/leasehold/src/quorum/waiting/tickets.rs",
    "crates/leasehold/src/record_slot.rs",
    "crates/leasehold/src/timers.rs",
];

/// What would make a decision depend on more than its arguments.
const WORDS: [&str; 21] = [
    "tokio",
    "tokio_util",
    "futures_util",
    "async",
    "await",
    "Future",
    "BoxFuture",
    "Clock",
    "SystemClock",
    "Ambient",
    "Entropy",
    "Instant",
    "SystemTime",
    "now(",
    "wall(",
    "rand",
    "Store",
    "std::fs",
    "std::net",
    "std::thread",
    "std::env",
];

pub(crate) fn check(tree: &[Source]) -> Vec<Offence> {
    let mut offences = Vec::new();
    for path in FILES {
        match tree.iter().find(|source| source.path == path) {
            Some(source) => offences.extend(impurities(source)),
            // A file that moved would otherwise leave the rule without anybody noticing.
            None => offences.push(Offence::at(
                path,
                0,
                "the file is on the list of pure ones (xtask/src/tidy/pure.rs) and not in the tree",
            )),
        }
    }
    offences
}

fn impurities(source: &Source) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (line, code) in source.shipped() {
        for word in WORDS.iter().filter(|word| has_word(code, word)) {
            let rule = format!("{word} in a file that only decides: take what it needs as a value");
            offences.push(Offence::at(&source.path, line, rule));
        }
    }
    offences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offences(text: &str) -> Vec<Offence> {
        impurities(&Source::new(FILES[1], text.into()))
    }

    #[test]
    fn reading_the_clock_and_waiting_are_impure() {
        assert_eq!(offences("fn f(c: &C) { c.now(); }").len(), 1);
        assert_eq!(offences("use tokio::sync::Notify;").len(), 1);
        assert_eq!(offences("async fn f() {}").len(), 1);
        assert_eq!(offences("fn f() { std::fs::read(\"x\"); }").len(), 1);
    }

    #[test]
    fn values_comments_and_tests_are_pure() {
        let text = "/// Never reads the Clock.\nfn f(now: BootInstant) -> BootInstant { now }\n\
                    #[cfg(test)]\nmod tests {\n    use tokio::test;\n}\n";
        assert!(offences(text).is_empty());
    }

    #[test]
    fn a_listed_file_that_is_gone_is_told() {
        let tree: Vec<Source> = FILES[1..]
            .iter()
            .map(|path| Source::new(path, String::new()))
            .collect();
        let found = check(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, FILES[0]);
    }
}
