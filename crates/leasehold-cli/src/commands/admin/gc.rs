//! `leasehold gc`: removes unused lock files.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::config;
use crate::options::span::span;
use crate::options::store_args::StoreArgs;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::{self, Output};
use crate::store::address::backend;

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Remove files that were not used for SPAN.
    ///
    /// At least an hour.
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "30d")]
    pub(crate) unused_for: Duration,

    /// Only count them.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print one JSON object on stdout.
    ///
    /// `version` is 1; later versions may add fields, but change none. `removed` and `kept`, numbers of lock files;
    /// `dry_run`.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Removes the files of locks that are free and were not used for long.
pub(crate) fn gc(args: &GcArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose_store(&args.store, output)?;
    let cleaned = backend(&choice)?.remove_unused(args.unused_for, args.dry_run)?;
    let printed = if args.json {
        output::print_json(&json!({
            "removed": cleaned.removed,
            "kept": cleaned.kept,
            "dry_run": args.dry_run,
        }))
    } else {
        let would = if args.dry_run {
            "would remove"
        } else {
            "removed"
        };
        output::print(&format!(
            "{would} {} lock files, kept {}\n",
            cleaned.removed, cleaned.kept
        ))
    };
    printed?;
    Ok(ExitCode::SUCCESS)
}
