//! Repeats what a subcommand shows.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use clap::Args;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold::store::exact_span;

use crate::options::span::wait_span;
use crate::options::timeout_args::TimeoutArgs;
use crate::output::failure::Failure;
use crate::output::{self};

/// The options of the subcommands that can be repeated.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct WatchArgs {
    /// Show it again every SPAN [default: 2s].
    ///
    /// A signal ends it.
    /// On a terminal, each picture replaces the one before. Elsewhere, it is printed again when it has changed.
    #[arg(
        long,
        value_name = "SPAN",
        value_parser = watch_span,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2s"
    )]
    watch: Option<Duration>,

    #[command(flatten)]
    timeout: TimeoutArgs,
}

pub(crate) fn watch_span(text: &str) -> Result<Duration, String> {
    match wait_span(text)? {
        span if span < SHORTEST => Err(format!("the shortest pause is {}", exact_span(SHORTEST))),
        span => Ok(span),
    }
}

/// A shorter pause would only load the store.
const SHORTEST: Duration = Duration::from_millis(100);

impl WatchArgs {
    /// The same for a list of locks.
    pub(crate) fn of_a_list(self) -> Self {
        Self {
            timeout: self.timeout.of_a_list(),
            ..self
        }
    }

    /// Shows `text`, once or until a signal ends the process or stdout has no reader. After the first picture, a failure of
    /// the store is shown in its place.
    pub(crate) async fn show(
        self,
        mut text: impl AsyncFnMut() -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        let Some(pause) = self.watch else {
            return output::print(&self.timeout.within(text()).await??);
        };
        let is_terminal = io::stdout().is_terminal();
        let (mut now, mut shown) = (self.timeout.within(text()).await??, String::new());
        loop {
            let has_reader = if is_terminal {
                // To the first column of the first line, then clear what follows.
                output::print_next(&format!("\x1b[H\x1b[J{now}"))?
            } else if now == shown {
                true
            } else {
                output::print_next(&now)?
            };
            if !has_reader {
                return Ok(());
            }
            shown = now;
            SystemClock.sleep_until(SystemClock.now() + pause).await;
            if !output::has_reader() {
                return Ok(());
            }
            let next = self.timeout.within(text()).await;
            let next = next.map_err(Failure::from).flatten();
            now = next.unwrap_or_else(|failure| format!("{failure}\n"));
        }
    }
}
