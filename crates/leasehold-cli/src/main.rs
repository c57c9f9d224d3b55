//! `leasehold run NAME -- CMD`: run a command under a lock, and end it in time if the lock is lost.
//!
//! The only crate that prints, reads the environment, decides exit codes and knows all stores.
#![cfg_attr(fuzzing, no_main, allow(dead_code))]

mod cli;
mod commands;
mod config;
#[cfg(any(test, fuzzing))]
mod fuzzing;
mod guardian;
mod locks;
mod options;
mod output;
mod process;
mod readiness;
mod runtime;
mod store;
mod supervise;
mod system;

use std::process::ExitCode as Status;

use cli::{completions, man};
use commands::Subcommand;
use commands::admin::{break_lock, doctor, gc, init};
use commands::holding::handle::renewer::{RenewerArgs, renew_in_background};
use commands::holding::{elect, fence, handle, hold, once, run};
use commands::looking::{ls, status, wait, waiters};
use guardian::args::GuardianArgs;
use guardian::guard;
use output::exit_code::ExitCode;
use output::failure::Failure;
use output::message::Message;
use output::{Output, colour, events};
use runtime::signals::die_of;

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::config(bytes));

fn main() -> Status {
    if let Some(guardian) = GuardianArgs::of_this_process() {
        return guardian
            .map_or_else(|error| cli::explain(&error), |args| guard(&args))
            .into();
    }
    if let Some(renewer) = RenewerArgs::of_this_process() {
        return renewer
            .map_or_else(
                |error| cli::explain(&error),
                |args| renew_in_background(&args),
            )
            .into();
    }
    if let Some(code) = completions::names_for_a_script() {
        return code.into();
    }
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(error) => return cli::explain(&error).into(),
    };
    colour::set_colour(cli.color);
    let output = Output::new(cli.subcommand.prints_json());
    let output = output.with_verbosity(cli.verbosity.verbosity());
    let output = match with_listeners(output.clone(), &cli.subcommand) {
        Ok(output) => output,
        Err(failure) => {
            output.print_message(&Message::Error(&failure));
            output.flush();
            return failure.code.into();
        }
    };
    if !cli.subcommand.reports_warnings() {
        events::Events::subscribe(&output);
    }
    let code = perform(&cli.subcommand, &output).unwrap_or_else(|failure| {
        output.print_message(&Message::Error(&failure));
        failure.code
    });
    output.mark_ended();
    if cli.subcommand.reports_end() {
        output.print_message(&Message::End(code));
    }
    output.flush();
    if let Some(signal) = code.signal() {
        die_of(signal);
    }
    code.into()
}

/// Adds to `output` what else listens to its messages.
fn with_listeners(output: Output, subcommand: &Subcommand) -> Result<Output, Failure> {
    let output = match subcommand.events_file() {
        Some(file) => output.with_events(file)?,
        None => output,
    };
    match subcommand.readiness() {
        Some(args) => args.attach_to(output, config::withhold_password),
        None => Ok(output),
    }
}

fn perform(subcommand: &Subcommand, output: &Output) -> Result<ExitCode, Failure> {
    match subcommand {
        Subcommand::Run(args) => run::run(args, output),
        Subcommand::Hold(args) => hold::hold(args, output),
        Subcommand::Acquire(args) => handle::acquire(args, output),
        Subcommand::Renew(args) => handle::renew(args, output),
        Subcommand::Release(args) => handle::release(args, output),
        Subcommand::Once(args) => once::once(args, output),
        Subcommand::Status(args) => status::status(args, output),
        Subcommand::Ls(args) => ls::ls(args, output),
        #[cfg(feature = "top")]
        Subcommand::Top(args) => commands::looking::top::top(args, output),
        Subcommand::Waiters(args) => waiters::waiters(args, output),
        Subcommand::Wait(args) => wait::wait(args, output),
        #[cfg(feature = "exporter")]
        Subcommand::Exporter(args) => commands::looking::exporter::exporter(args, output),
        Subcommand::Break(args) => break_lock::break_lock(args, output),
        Subcommand::Gc(args) => gc::gc(args, output),
        Subcommand::Init(args) => init::init(args, output),
        #[cfg(feature = "redis")]
        Subcommand::Members(args) => commands::admin::members::members(args, output),
        Subcommand::Doctor(args) => doctor::doctor(args, output),
        Subcommand::Fence(args) => fence::fence(args),
        Subcommand::Elect(args) if args.observe => elect::observe(args, output),
        Subcommand::Elect(args) => elect::elect(args, output),
        Subcommand::Completions { shell } => completions::completions(*shell),
        Subcommand::Man {
            write: Some(folder),
            ..
        } => man::write_all(folder),
        Subcommand::Man { subcommand, .. } => man::manual(subcommand),
    }
}
