//! The development tasks of the project. `cargo xtask` lists them.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a command for developers: it measures time, reads the environment and prints"
)]

use std::process::ExitCode;

mod bench;
mod bindings;
mod commands;
mod lint;
mod msrv;
mod mutants;
mod package;
mod platforms;
mod postgres;
mod programs;
mod proof;
mod public_api;
mod python;
mod quick;
mod setup;
mod skip;
mod step;
mod suite;
mod unpack;
mod workspace;
mod zookeeper;

use workspace::Workspace;

const HELP: &str = "\
Usage: cargo xtask COMMAND

  verify   [--skip NAME]...     everything that must hold before a change is merged
  test     [--skip NAME]...     installs what the tests need, then runs them
  test     --quick              the tests that need only redis-server, in three minutes
  setup    [--skip NAME]...     only installs what the tests need
  lint                          sizes of files and crates, layers and known defects (3 s)
  fix                           formats, and applies clippy's fixes
  mutants  [K/N]                lets cargo-mutants change the modules that decide
  proof    [--list | NAME...]   puts known bugs back; random programs must find each
  sim      [--seeds A..B | --trace SEED] [--faults none|all|NAMES]
  faults   [--minutes N] [--store SUITE] [--seed N | --program FILE]
                                random programs under random faults, on each store
  bench    [--quick] [SECTION]...   compares with other libraries; `report` writes
  instructions [--record | --profile] [NAME]...      counts instructions of hot paths
  bindings [python|node] [--quick | --all-platforms | --bench]
                                builds, tests and packs the bindings for other languages
  package  [x86_64|aarch64]...  builds and checks the packages of the command
  platforms                     builds programs for macOS and Windows
  public-api [--record]         compares the public items of the libraries with the recorded lists
  msrv                          builds the crates with the oldest Rust that they declare
  servers  [N]                  runs N Redis servers (default 5) until Ctrl-C

--skip leaves out tests that need NAME: redis, redis-py, postgres, etcd, zookeeper,
kazoo, mariadb, moto, systemd or prometheus.
CONTRIBUTING.md describes the daily work, docs/development/testing.md the larger tests.
";

/// Why a command failed.
#[derive(Debug)]
enum Failure {
    /// The arguments are wrong.
    Usage(String),
    /// The work failed; the text says what failed and what to do.
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
            // EX_USAGE of sysexits.h, like the `leasehold` command.
            ExitCode::from(64)
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let Some((command, rest)) = arguments.split_first() else {
        print!("{HELP}");
        return Ok(());
    };
    let find = Workspace::find;
    match command.as_str() {
        "help" | "-h" | "--help" => {
            print!("{HELP}");
            Ok(())
        }
        "verify" => commands::verify(&find()?, &skip::skips(rest)?),
        "test" if rest == ["--quick"] => quick::run(&find()?),
        "test" => commands::test(&find()?, &skip::skips(rest)?),
        "setup" => Ok(setup::run(&find()?, &skip::skips(rest)?)?),
        "lint" => none(rest).and_then(|()| Ok(lint::run(&find()?)?)),
        "fix" => none(rest).and_then(|()| Ok(commands::fix(&find()?)?)),
        "mutants" => match rest {
            [] => Ok(mutants::run(&find()?, None)?),
            [part, rest @ ..] => none(rest).and_then(|()| Ok(mutants::run(&find()?, Some(part))?)),
        },
        "proof" => Ok(proof::run(&find()?, rest)?),
        "sim" => Ok(commands::sim(&find()?, rest)?),
        "faults" => commands::faults(&find()?, rest),
        "bench" => Ok(bench::run(&find()?, rest)?),
        "instructions" => Ok(commands::instructions(&find()?, rest)?),
        "bindings" => bindings::run(&find()?, rest),
        "package" => Ok(package::run(&find()?, rest)?),
        "platforms" => none(rest).and_then(|()| Ok(platforms::run(&find()?)?)),
        "msrv" => none(rest).and_then(|()| Ok(msrv::run(&find()?)?)),
        "public-api" if rest == ["--record"] => Ok(public_api::run(&find()?, true)?),
        "public-api" => none(rest).and_then(|()| Ok(public_api::run(&find()?, false)?)),
        "servers" => Ok(commands::servers(&find()?, rest)?),
        unknown => Err(Failure::Usage(format!("unknown command {unknown:?}"))),
    }
}

fn none(rest: &[String]) -> Result<(), Failure> {
    match rest.first() {
        None => Ok(()),
        Some(argument) => Err(Failure::Usage(format!("unexpected argument {argument:?}"))),
    }
}
