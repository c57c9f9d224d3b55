use clap::ValueEnum;

/// What others see of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowCommand {
    /// Nothing.
    None,
    /// Its name, without arguments.
    Name,
    /// The whole line.
    Line,
}

impl ShowCommand {
    /// Reads the value of a variable or of a file.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Self::from_str(text, false).map_err(|_| "it must be none, name or line".into())
    }
}
