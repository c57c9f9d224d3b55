//! The project's chores. `cargo xtask` lists them; each verb is a file.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a command for developers: it times its steps, reads the environment and prints"
)]

use std::process::ExitCode;

mod bench;
mod captures;
mod faults;
mod fix;
mod instructions;
mod mutants;
mod postgres;
mod programs;
mod python;
mod servers;
mod setup;
mod sim;
mod step;
mod suite;
mod test;
mod tidy;
mod verify;
mod workspace;

use workspace::Workspace;

const HELP: &str = "\
Usage: cargo xtask VERB

  verify  [--skip NAME]...  the gate, which changes nothing: tidy, format, clippy, docs, tests
  tidy                      the rules of ARCHITECTURE.md and CONTRIBUTING.md alone
  test    [--skip NAME]...  installs what the tests need where it may, then runs every test
  setup   [--skip NAME]...  installs what the tests need, and runs none
  mutants  [NAME]...         lets known defects into a copy of the tree: each must turn a test red
  mutants  --part            a fifth of them, another one with each commit, and what the last one changed
  mutants  --page            writes docs/mutants.md anew
  fix                       formats, and applies what clippy can mend by itself
  captures [--check]        draws the README's pictures from what the program shows on terminals; or
                            says whether they are still the same
  servers [N]               runs N Redis servers (5 if not said) until Ctrl-C
  sim     [--seeds A..B | --trace SEED] [--faults none|all|NAMES]
                            simulates clients, servers and a network: seeds 0..1000 with all faults,
                            if not said
  faults  [--minutes N] [--seed N] [--only FAULT] [--without-trust] [--elections] [--json]
                            breaks servers, networks and processes under a lock, each way in turn
                            for N minutes in all (1 if not said), and prints what came of it
  bench   handover|waiters|modes [--quick] [--waiters K,K] [--nodes 1,5]
                            sets Leasehold beside other libraries, in turn and repeatedly
  instructions [--record] [--profile] [NAME]...
                            counts the instructions of the hot paths, and holds them against the
                            recorded ones

--skip leaves out the tests that need NAME (redis, redis-py, postgres), and says so.
";

/// Why a verb failed.
#[derive(Debug)]
enum Failure {
    /// The command line makes no sense.
    Usage(String),
    /// The work itself failed; the text says what failed and what to do.
    Work(String),
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Work(text)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Work(text)) => {
            eprintln!("xtask: {text}");
            ExitCode::FAILURE
        }
        Err(Failure::Usage(text)) => {
            eprintln!("xtask: {text}\n\n{HELP}");
            // EX_USAGE of sysexits.h, as the `leasehold` command has it.
            ExitCode::from(64)
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let Some((verb, rest)) = arguments.split_first() else {
        print!("{HELP}");
        return Ok(());
    };
    let workspace = Workspace::find;
    match verb.as_str() {
        "help" | "-h" | "--help" => {
            print!("{HELP}");
            Ok(())
        }
        "verify" => verify::run(&workspace()?, &suite::skips(rest)?),
        "tidy" => none(rest).and_then(|()| Ok(tidy::run(&workspace()?)?)),
        "test" => test::run(&workspace()?, &suite::skips(rest)?),
        "setup" => Ok(setup::run(&workspace()?, &suite::skips(rest)?)?),
        "mutants" if rest == ["--part"] => mutants::run_part(&workspace()?),
        "mutants" if rest == ["--page"] => mutants::write_page(&workspace()?),
        "mutants" => mutants::run(&workspace()?, rest),
        "fix" => none(rest).and_then(|()| Ok(fix::run(&workspace()?)?)),
        "sim" => sim::run(&workspace()?, rest),
        "bench" => bench::run(&workspace()?, rest),
        "instructions" => instructions::run(&workspace()?, rest),
        "captures" => captures::run(&workspace()?, rest),
        "servers" => servers::run(&workspace()?, rest),
        "faults" => faults::run(&workspace()?, rest),
        unknown => Err(Failure::Usage(format!("there is no verb {unknown:?}"))),
    }
}

fn none(rest: &[String]) -> Result<(), Failure> {
    match rest.first() {
        None => Ok(()),
        Some(argument) => Err(Failure::Usage(format!(
            "this verb takes no argument, and was given {argument:?}"
        ))),
    }
}
