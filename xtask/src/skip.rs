use crate::Failure;

/// What can be left out by name, and the tests that need it: those of `packages`, and all others with
/// `tests` in their name or the name of their module. If another test needs it, that test fails.
struct Skip {
    name: &'static str,
    packages: &'static [&'static str],
    tests: &'static str,
}

impl Skip {
    const fn new(
        name: &'static str,
        packages: &'static [&'static str],
        tests: &'static str,
    ) -> Self {
        Self {
            name,
            packages,
            tests,
        }
    }
}

const SKIPS: [Skip; 10] = [
    Skip::new(
        "redis",
        &[
            "leasehold-redis",
            "leasehold-fakeredis",
            "leasehold-testkit",
        ],
        "redis",
    ),
    Skip::new("redis-py", &[], "redis_py"),
    Skip::new("postgres", &["leasehold-postgres"], "postgres"),
    Skip::new("etcd", &["leasehold-etcd"], "etcd"),
    Skip::new("zookeeper", &["leasehold-zookeeper"], "zookeeper"),
    Skip::new("kazoo", &[], "kazoo"),
    Skip::new("mariadb", &[], "mariadb"),
    Skip::new("moto", &[], "moto"),
    Skip::new("systemd", &[], "systemd"),
    Skip::new("prometheus", &[], "prometheus"),
];

/// The options that leave tests out, as a sentence lists them.
pub(crate) fn options() -> String {
    SKIPS.map(|skip| format!("--skip {}", skip.name)).join(", ")
}

/// The names after each `--skip`.
pub(crate) fn skips(arguments: &[String]) -> Result<Vec<String>, Failure> {
    let mut skipped = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let name = match argument.strip_prefix("--skip") {
            Some("") => rest.next().map(String::as_str),
            Some(joined) => joined.strip_prefix('='),
            None => return Err(Failure::Usage(format!("unknown argument {argument:?}"))),
        };
        match name {
            Some(name) if SKIPS.iter().any(|skip| skip.name == name) => {
                skipped.push(name.to_owned());
            }
            other => {
                return Err(Failure::Usage(format!(
                    "--skip takes one of {}, not {:?}",
                    SKIPS.map(|skip| skip.name).join(", "),
                    other.unwrap_or_default()
                )));
            }
        }
    }
    Ok(skipped)
}

/// Whether one of `names` is left out.
pub(crate) fn skips_any(skipped: &[String], names: &[&str]) -> bool {
    names
        .iter()
        .any(|name| skipped.iter().any(|out| out == name))
}

/// The options of cargo and the filters of the test runner that leave out what is skipped.
pub(crate) fn choice(skipped: &[String]) -> (Vec<&'static str>, Vec<&'static str>) {
    let (mut options, mut filters) = (Vec::new(), Vec::new());
    for skip in SKIPS.iter().filter(|skip| skips_any(skipped, &[skip.name])) {
        for package in skip.packages {
            println!("SKIPPED by name ({}): the tests of {package}", skip.name);
            options.extend(["--exclude", *package]);
        }
        let (name, tests) = (skip.name, skip.tests);
        println!("SKIPPED by name ({name}): the tests that have {tests:?} in their names");
        filters.extend(["--skip", tests]);
    }
    (options, filters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_tests_are_left_out() {
        assert_eq!(choice(&[]), (vec![], vec![]));
        let (options, filters) = choice(&["redis".into()]);
        assert!(options.contains(&"leasehold-redis"));
        assert_eq!(filters, ["--skip", "redis"]);
        let redis_py = choice(&["redis-py".into()]);
        assert_eq!(redis_py, (vec![], vec!["--skip", "redis_py"]));
    }

    #[test]
    fn unknown_skips_are_refused() {
        let given = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            skips(&words).ok()
        };
        let both = given(&["--skip", "redis", "--skip=redis-py"]);
        assert_eq!(both, Some(vec!["redis".into(), "redis-py".into()]));
        for wrong in [
            &["--skip", "everything"][..],
            &["--skip"],
            &["--skipredis"],
            &["redis"],
        ] {
            assert_eq!(given(wrong), None);
        }
    }
}
