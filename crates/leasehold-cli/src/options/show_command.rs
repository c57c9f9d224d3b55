use clap::ValueEnum;
use serde::Deserialize;

/// What others see of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ShowCommand {
    /// Nothing.
    None,
    /// Its name, without arguments.
    Name,
    /// The whole line.
    Line,
}
