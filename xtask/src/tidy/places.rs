use super::Offence;
use super::source::{Source, has_word};

/// Checks what may appear in one place of the libraries only. The list of disallowed methods (clippy.toml)
/// finds most uses; these rules find the rest, and reject opt-outs.
pub(crate) fn check(tree: &[Source]) -> Vec<Offence> {
    let mut offences = Vec::new();
    for source in tree.iter().filter(|source| source.is_library_code()) {
        offences.extend(opt_outs(source));
        offences.extend(misplaced(source));
    }
    offences
}

const CLOCK: &str = "crates/leasehold/src/env/clock.rs";
const BACKGROUND: &str = "crates/leasehold/src/runtime/background.rs";

/// Words, the only file where a library may use them, and the rule.
const PLACES: [(&[&str], Option<&str>, &str); 3] = [
    (
        &[
            "Instant::now",
            "SystemTime::now",
            "ClockId",
            "clock_gettime",
            "tokio::time",
        ],
        Some(CLOCK),
        "time is read, and waited for, in clock.rs alone",
    ),
    (
        &[
            "thread::spawn",
            "thread::Builder",
            "thread::scope",
            "tokio::spawn",
            "spawn_blocking",
            "spawn_local",
            "LocalSet",
            "JoinSet",
        ],
        Some(BACKGROUND),
        "threads and tasks start in background.rs alone",
    ),
    (
        &[
            "print!",
            "println!",
            "eprint!",
            "eprintln!",
            "dbg!",
            "stdout",
            "stderr",
            "env::var",
            "env::var_os",
            "env::vars",
            "env::vars_os",
            "env::set_var",
            "env::remove_var",
            "env::args",
            "env::args_os",
            "process::exit",
            "process::abort",
            "ExitCode",
        ],
        None,
        "printing, the environment and exit codes belong to the command line",
    ),
];

fn misplaced(source: &Source) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (line, code) in source.shipped() {
        for (words, home, rule) in PLACES {
            if home == Some(source.path.as_str()) {
                continue;
            }
            if let Some(word) = words.iter().find(|word| has_word(code, word)) {
                offences.push(Offence::at(&source.path, line, format!("{word}: {rule}")));
            }
        }
    }
    offences
}

/// `allow` or `expect` of the lints that keep those rules.
fn opt_outs(source: &Source) -> Vec<Offence> {
    if source.path == CLOCK || source.path == BACKGROUND {
        return Vec::new();
    }
    let lints = ["disallowed_methods", "print_stdout", "print_stderr"];
    source
        .shipped()
        .filter_map(|(line, code)| {
            let lint = lints.iter().find(|lint| has_word(code, lint))?;
            let rule = format!("clippy::{lint} is lifted in clock.rs and background.rs alone");
            Some(Offence::at(&source.path, line, rule))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offences(files: &[(&str, &str)]) -> Vec<(String, usize)> {
        let tree: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::new(path, (*text).into()))
            .collect();
        let found = check(&tree);
        found
            .into_iter()
            .map(|offence| (offence.path, offence.line))
            .collect()
    }

    #[test]
    fn threads_start_in_background_alone() {
        let text = "fn f() {\n    std::thread::Builder::new();\n}\n";
        assert!(offences(&[(BACKGROUND, text)]).is_empty());
        let elsewhere = "crates/leasehold/src/lease/renewer.rs";
        assert_eq!(offences(&[(elsewhere, text)]), [(elsewhere.to_owned(), 2)]);
        assert_eq!(
            offences(&[(CLOCK, text)]).len(),
            1,
            "each has its own place"
        );
    }

    #[test]
    fn lints_are_lifted_only_where_they_belong() {
        let text = "#[expect(clippy::disallowed_methods, reason = \"here\")]\nfn f() {}\n";
        assert!(offences(&[(CLOCK, text)]).is_empty());
        assert_eq!(
            offences(&[("crates/leasehold-file/src/lib.rs", text)]).len(),
            1
        );
        let test = format!("#[cfg(test)]\nmod tests {{\n{text}}}\n");
        assert!(offences(&[("crates/leasehold-file/src/lib.rs", &test)]).is_empty());
        assert!(offences(&[("crates/leasehold-file/tests/contract.rs", text)]).is_empty());
    }

    #[test]
    fn a_library_neither_prints_nor_reads_the_environment() {
        let text = "fn f() { println!(\"{:?}\", std::env::vars()); }\n";
        assert_eq!(
            offences(&[("crates/leasehold-redis/src/lib.rs", text)]).len(),
            1
        );
        assert!(offences(&[("crates/leasehold-cli/src/main.rs", text)]).is_empty());
        let comment = "/// Use `println!` at will.\nfn f() {}\n";
        assert!(offences(&[("crates/leasehold-redis/src/lib.rs", comment)]).is_empty());
    }
}
