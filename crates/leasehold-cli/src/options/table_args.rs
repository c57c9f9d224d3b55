use clap::Args;

use crate::output::table;

/// How wide a table is. Part of the subcommands that print one.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct TableArgs {
    /// Show all columns, and cut no text.
    ///
    /// Otherwise the table fits the terminal: it leaves out the columns that matter least. Nothing is cut if stdout is no
    /// terminal.
    #[arg(long)]
    wide: bool,
}

impl TableArgs {
    /// The width of the terminal that the table fits into; `None` for a whole table.
    pub(crate) fn width(self) -> Option<usize> {
        match self.wide {
            true => None,
            false => table::terminal_width(),
        }
    }
}
