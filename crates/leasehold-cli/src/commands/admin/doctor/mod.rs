//! `leasehold doctor`: what is wrong with a store, why it matters, and what to do. Changes nothing.

pub(crate) mod args;

use crate::commands::admin::doctor::args::DoctorArgs;
use crate::config;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::finding::Verdict;
use crate::output::message::Message;
use crate::output::{self, Output, colour};
use crate::store::address::backend;

/// Checks a store. The exit code says whether locks can be acquired and are safe.
pub(crate) fn doctor(args: &DoctorArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose_store(&args.store, output)?;
    let backend = backend(&choice)?;
    if output.has_terminal() {
        let text = "checking the store; a server that does not answer takes a few seconds";
        output.show_status(&Message::Notice(text));
    }
    let report = backend.examine(args.timeout);
    output.clear_status();
    output.flush();
    let report = report?;
    let printed = if args.json {
        output::print_json(&report.json())
    } else {
        output::print(&report.text(args.all, colour::is_in_colour()))
    };
    printed?;
    Ok(match report.verdict() {
        _ if !report.has_majority() => ExitCode::UNREACHABLE,
        Verdict::Red => ExitCode::UNSOUND,
        Verdict::Green | Verdict::Yellow => ExitCode::SUCCESS,
    })
}
