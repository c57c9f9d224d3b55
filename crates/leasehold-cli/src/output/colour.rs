use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use clap::ValueEnum;

/// When the program uses colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColourChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The value of `--color`. It belongs to the process, as stdout and stderr do.
static COLOUR: OnceLock<ColourChoice> = OnceLock::new();

/// Follows `--color` from now on.
pub(crate) fn set_colour(choice: ColourChoice) {
    let _ = COLOUR.set(choice);
}

/// Whether stdout may be in colour.
pub(crate) fn is_in_colour() -> bool {
    may_colour(&io::stdout())
}

/// Automatic colours need a terminal, and respect <https://no-color.org>.
pub(super) fn may_colour(stream: &impl IsTerminal) -> bool {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match COLOUR.get().copied().unwrap_or(ColourChoice::Auto) {
        ColourChoice::Always => true,
        ColourChoice::Never => false,
        ColourChoice::Auto => {
            stream.is_terminal()
                && variable("NO_COLOR").is_none()
                && variable("TERM").is_none_or(|term| term != "dumb")
        }
    }
}

/// A style for a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Red,
    Green,
    Yellow,
}

impl Style {
    /// The text in this style, as a terminal takes it (SGR).
    pub(crate) fn paint(self, text: &str) -> String {
        let code = match self {
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
