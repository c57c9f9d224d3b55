//! `leasehold top`: a live view of locks, holders, waiters and members.

mod args;
mod draw;
mod keys;
mod order;
mod prompt;
mod screen;
mod snapshot;
mod state;

use std::io::{self, IsTerminal as _};

use crate::commands::looking::top::screen::Screen;
use crate::commands::looking::top::state::Top;
use crate::config;
use crate::output::Output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::runtime::runtime;
use crate::runtime::signals::Signals;
use crate::store::OpenStore;

pub(crate) use args::TopArgs;

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
    let client = store.watcher();
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
