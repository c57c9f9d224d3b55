use super::Offence;
use super::source::{Source, has_word};

/// The files of the core that only decide: their results depend on their arguments alone.
const FILES: [&str; 7] = [
    "crates/leasehold/src/acquire/backoff.rs",
    "crates/leasehold/src/election/news.rs",
    "crates/leasehold/src/lease/validity.rs",
    "crates/leasehold/src/memory/record_table.rs",
    "crates/leasehold/src/once/state.rs",
    "crates/leasehold/src/store/record_state.rs",
    "crates/leasehold/src/lease/timers.rs",
];

/// The engine, the codec and the parser: all of their files only decide, so that the simulator runs the
/// same code as production. The engine draws random numbers from a source that its caller provides.
const FOLDERS: [&str; 4] = [
    "crates/leasehold-quorum/src/",
    "crates/leasehold-redis/src/codec/",
    "crates/leasehold-redis/src/resp/",
    "crates/leasehold-redis/src/scripts/",
];
const GIVEN: &str = "Entropy";
/// What the path of a test module in these folders contains.
const TESTS: &str = "tests";

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
            Some(source) => offences.extend(impurities(source, "")),
            // Otherwise a file that moved would silently escape the rule.
            None => offences.push(Offence::at(
                path,
                0,
                "the file is on the list of pure ones (xtask/src/tidy/pure.rs) and not in the tree",
            )),
        }
    }
    for folder in FOLDERS {
        let inside = |source: &&Source| source.is_rust() && source.path.starts_with(folder);
        let mut files = tree.iter().filter(inside).peekable();
        if files.peek().is_none() {
            let rule = "the folder is on the list of pure ones (xtask/src/tidy/pure.rs) and empty";
            offences.push(Offence::at(folder, 0, rule));
        }
        let is_test = |source: &Source| source.path.contains(TESTS);
        let shipped = files.filter(|source| !is_test(source));
        offences.extend(shipped.flat_map(|source| impurities(source, GIVEN)));
    }
    offences
}

fn impurities(source: &Source, given: &str) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (line, code) in source.shipped() {
        let used = |word: &&&str| **word != given && has_word(code, word);
        for word in WORDS.iter().filter(used) {
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
        impurities(&Source::new(FILES[1], text.into()), "")
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
    fn missing_files_and_empty_folders_are_reported() {
        let files = FILES[1..].iter().map(ToString::to_string);
        let folders = FOLDERS[1..].iter().map(|folder| format!("{folder}a.rs"));
        let tree: Vec<Source> = files
            .chain(folders)
            .map(|path| Source::new(&path, String::new()))
            .collect();
        let found: Vec<String> = check(&tree).into_iter().map(|it| it.path).collect();
        assert_eq!(found, [FILES[0], FOLDERS[0]]);
    }

    #[test]
    fn engine_may_draw_random_numbers_only() {
        let engine = |text: &str| {
            let path = format!("{}a.rs", FOLDERS[0]);
            impurities(&Source::new(&path, text.into()), GIVEN)
        };
        assert!(engine("use leasehold::ambient::Entropy;").is_empty());
        assert_eq!(engine("use leasehold::ambient::Ambient;").len(), 1);
    }
}
