//! `leasehold run NAME -- CMD`: run a command under a lock, and end it in time if the lock is lost.
//!
//! The only crate that prints, reads the environment, decides exit codes and knows all stores.
#![cfg_attr(fuzzing, no_main, allow(dead_code))]

mod args;
mod bench;
mod bench_args;
mod break_args;
mod break_lock;
mod config;
mod config_file;
mod doctor;
mod doctor_args;
mod documents;
mod elect_args;
mod events;
mod exit_code;
mod failure;
mod fence;
mod fence_args;
#[cfg(any(test, fuzzing))]
mod fuzzing;
mod help;
mod hold;
mod hold_args;
mod holder_text;
mod leader_text;
mod lock_options;
mod ls;
mod ls_args;
mod message;
mod observe;
mod once_answer;
mod once_args;
mod output;
mod own_client;
mod quorum_shortfall;
mod run;
mod run_args;
mod set;
mod status;
mod store_url;
mod subcommand;
mod table;
mod take_args;
mod waiter_text;
mod waiters;
mod waiters_args;
mod work;

use std::process;

use exit_code::ExitCode;
use failure::Failure;
use message::Message;
use output::Output;
use run::guardian::guard;
use run::guardian_args::GuardianArgs;
use subcommand::Subcommand;

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::config(bytes));

fn main() -> process::ExitCode {
    if let Some(guardian) = GuardianArgs::of_this_process() {
        return guardian
            .map_or_else(|error| args::explain(&error), |args| guard(&args))
            .into();
    }
    let cli = match args::parse() {
        Ok(cli) => cli,
        Err(error) => return args::explain(&error).into(),
    };
    output::set_colour(cli.color);
    let output = Output::new(cli.subcommand.speaks_json());
    if !cli.subcommand.tells_all_by_itself() {
        events::Events::show_on(&output);
    }
    let code = perform(&cli.subcommand, &output).unwrap_or_else(|failure| {
        output.say(&Message::Error(&failure));
        failure.code
    });
    code.into()
}

fn perform(subcommand: &Subcommand, output: &Output) -> Result<ExitCode, Failure> {
    match subcommand {
        Subcommand::Run(args) => run::run(args, output),
        Subcommand::Hold(args) => hold::hold(args, output),
        Subcommand::Acquire(args) => hold::acquire(args, output),
        Subcommand::Renew(args) => hold::renew(args, output),
        Subcommand::Release(args) => hold::release(args, output),
        Subcommand::Once(args) => run::once::once(args, output),
        Subcommand::Status(args) => status::status(args, output),
        Subcommand::Ls(args) => ls::ls(args, output),
        Subcommand::Waiters(args) => waiters::waiters(args, output),
        Subcommand::Break(args) => break_lock::break_lock(args, output),
        Subcommand::Init(args) => set::init(args),
        Subcommand::Members(args) => set::members(args, output),
        Subcommand::Bench(args) => bench::bench(args, output),
        Subcommand::Doctor(args) => doctor::doctor(args),
        Subcommand::Fence(args) => fence::fence(args),
        Subcommand::Elect(args) if args.observe => observe::observe(args, output),
        Subcommand::Elect(args) => run::elect(args, output),
        Subcommand::Completions { shell } => documents::completions(*shell),
        Subcommand::Man { subcommand } => documents::manual(subcommand),
    }
}
