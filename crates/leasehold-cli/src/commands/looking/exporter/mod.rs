//! `leasehold exporter`: what a store holds, for Prometheus.

mod http;
mod metrics;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use leasehold::Client;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold::look::Pattern;

use crate::commands::looking::exporter::http::Metrics;
use crate::commands::looking::exporter::metrics::Sample;
use crate::commands::looking::watch::watch_span;
use crate::config;
use crate::options::listing::limit;
use crate::options::store_args::StoreArgs;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::{self, Output};
use crate::runtime::runtime;
use crate::store::OpenStore;

#[derive(Debug, Args)]
pub(crate) struct ExporterArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Serve the metrics at http://ADDRESS/metrics.
    ///
    /// Each request asks the store. The port has no password: listen on an address of this machine or of a network of
    /// yours.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "textfile")]
    pub(crate) listen: Option<SocketAddr>,

    /// Write the metrics to FILE again and again.
    ///
    /// For the textfile collector of node_exporter. The file is replaced in one step.
    #[arg(long, value_name = "FILE")]
    pub(crate) textfile: Option<PathBuf>,

    /// Pause between two writes of FILE.
    #[arg(long, value_name = "SPAN", value_parser = watch_span, default_value = "15s", requires = "textfile")]
    pub(crate) every: Duration,

    /// The value of the label `store`, in place of the addresses.
    ///
    /// With it, the series of a quorum stay the same when its members change.
    #[arg(long, value_name = "NAME")]
    pub(crate) store_name: Option<String>,

    /// Read at most N locks, 1 to 100000.
    #[arg(long, value_name = "N", value_parser = limit, allow_negative_numbers = true, default_value_t = 1000)]
    pub(crate) limit: usize,

    /// The names of the locks: `*` matches any text.
    #[arg(value_name = "PATTERN", default_value = "*")]
    pub(crate) pattern: String,
}

/// Prints the metrics of a store once, or serves or writes them until a signal ends the process.
pub(crate) fn exporter(args: &ExporterArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose_store(&args.store, output)?;
    let store = OpenStore::open(&choice)?;
    let pattern = Pattern::new(&args.pattern)?;
    let client = store.watcher();
    let limit = args.limit;
    let name = args.store_name.clone();
    let name = name.unwrap_or_else(|| client.to_string());
    runtime()?.block_on(async {
        if let Some(address) = args.listen {
            let client = Client::clone(&client);
            let metrics: Metrics = Arc::new(move || {
                let (client, pattern, name) = (client.clone(), pattern.clone(), name.clone());
                Box::pin(async move { Sample::take(&client, &pattern, limit).await.text(&name) })
            });
            match http::serve(address, metrics, output).await? {}
        }
        loop {
            let text = Sample::take(&client, &pattern, limit).await.text(&name);
            match &args.textfile {
                None => {
                    output::print(&text)?;
                    return Ok(ExitCode::SUCCESS);
                }
                Some(file) => replace(file, &text)?,
            }
            SystemClock
                .sleep_until(SystemClock.now() + args.every)
                .await;
        }
    })
}

/// Replaces the file in one step, so that its reader sees the old metrics or the new ones.
fn replace(file: &Path, text: &str) -> Result<(), Failure> {
    // The collector reads files that end with .prom only.
    let draft = file.with_extension("prom.new");
    let written = fs::write(&draft, text).and_then(|()| fs::rename(&draft, file));
    written.map_err(|error| {
        let text = format!("cannot write {}: {error}", file.display());
        Failure::new(ExitCode::IO, text)
    })
}
