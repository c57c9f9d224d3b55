//! `leasehold doctor`: what is wrong with a store, why it matters, and what to do. Changes nothing.

pub(crate) mod args;
mod files;
mod finding;
mod quorum;
mod report;
mod restart;
mod server;
mod snapshot;
#[cfg(test)]
mod tests;

use leasehold_file::DirectoryFacts;

use crate::commands::doctor::args::DoctorArgs;
use crate::config::{self, Addresses, Choice};
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::{self, Output, colour};
use crate::runtime::runtime;
use crate::store::address::StoreAddress;
use crate::store::{OpenStore, files as file_store};
use finding::Verdict;
use report::{Report, Subject};
use snapshot::Snapshot;

/// Checks a store. The exit code says whether locks can be acquired and are safe.
pub(crate) fn doctor(args: &DoctorArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose_store(&args.store, output)?;
    let report = match &choice {
        Choice::Local | Choice::Unsaid => of_files(&file_store::look_at_default_files()?),
        Choice::Stores(addresses) => match StoreAddress::of(addresses)? {
            StoreAddress::Folder(url) => {
                of_files(&addresses.blame(file_store::look_at_files(url))?)
            }
            StoreAddress::Servers(_) => of_servers(addresses)?,
        },
    };
    let printed = if args.json {
        output::print_json(&report.json())
    } else {
        output::print(&report.text(colour::is_in_colour()))
    };
    printed.map_err(|error| Failure::of_stdout(&error))?;
    Ok(match report.verdict() {
        _ if !report.has_majority() => ExitCode::UNREACHABLE,
        Verdict::Red => ExitCode::UNSOUND,
        Verdict::Green | Verdict::Yellow => ExitCode::SUCCESS,
    })
}

fn of_files(facts: &DirectoryFacts) -> Report {
    Report {
        store: format!("files in {}", facts.path.display()),
        majority: None,
        checks: files::judge(facts),
        members: Vec::new(),
    }
}

fn of_servers(addresses: &Addresses) -> Result<Report, Failure> {
    // For its name only; sends nothing.
    let store = OpenStore::at(addresses)?.store().to_string();
    let snapshot = runtime()?.block_on(Snapshot::find(addresses))?;
    let servers = snapshot.servers.iter().enumerate();
    let members = servers.map(|(place, server)| Subject {
        id: server.id.to_string(),
        checks: quorum::of_server(&snapshot, place),
        facts: report::facts(server),
    });
    Ok(Report {
        store,
        majority: Some((snapshot.voting(), snapshot.needed())),
        checks: quorum::of_store(&snapshot),
        members: members.collect(),
    })
}
