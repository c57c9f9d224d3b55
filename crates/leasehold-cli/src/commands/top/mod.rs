//! `leasehold top`: a live view of locks, holders, waiters and members.

mod draw;
mod screen;
mod snapshot;
mod state;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use clap::Args;
use leasehold::store::Pattern;

use crate::commands::top::screen::Screen;
use crate::commands::top::state::Top;
use crate::commands::watch::watch_span;
use crate::config;
use crate::options::store_args::StoreArgs;
use crate::output::Output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::runtime::runtime;
use crate::runtime::signals::Signals;
use crate::store::OpenStore;

/// The arguments of `top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Ask the store again every SPAN.
    ///
    /// If an answer takes long, the pause is at least four times as long as that, so that a large store has little work.
    #[arg(long, value_name = "SPAN", value_parser = watch_span, default_value = "2s")]
    pub(crate) interval: Duration,

    /// Read at most N locks, in the order of names, 1 to 100000.
    #[arg(
        long,
        value_name = "N",
        value_parser = super::ls::limit,
        allow_negative_numbers = true,
        default_value_t = 10_000
    )]
    pub(crate) limit: usize,

    /// The names: `*` matches any text, `?` one character.
    #[arg(value_name = "PATTERN", value_parser = super::ls::pattern, default_value = "*")]
    pub(crate) pattern: Pattern,
}

/// Shows the locks until a key or a signal ends it.
pub(crate) fn top(args: &TopArgs, output: &Output) -> Result<ExitCode, Failure> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Failure::usage(
            "top needs a terminal; use `leasehold ls --json` or `leasehold ls --watch`",
        ));
    }
    let choice = config::choose_store(&args.store, output)?;
    let blocked = Signals::block()?;
    let store = OpenStore::open(&choice)?;
    let client = store.client();
    let top = Top::new(client.to_string(), args.interval);
    runtime()?.block_on(async {
        let signals = Signals::new(blocked)?;
        let screen = Screen {
            args,
            client: &client,
            signals: &signals,
        };
        screen.show(top).await
    })
}
