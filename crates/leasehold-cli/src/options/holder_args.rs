use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use leasehold::look::ClientInfo;

use crate::options::defaults::Defaults;
use crate::options::show_command::ShowCommand;
use crate::output::failure::Failure;

/// What others see next to the holder or waiter. Part of the subcommands that take a lock.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct LabelArgs {
    /// Show this text next to the holder of the lock.
    ///
    /// In `status`, `ls`, `waiters` and the messages of waiters. At most 64 bytes.
    #[arg(long, value_name = "TEXT", value_parser = label)]
    pub(crate) label: Option<String>,
}

/// What others see of CMD, and what CMD sees. Part of the subcommands that run a command.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CommandArgs {
    /// What the other users of the store see of CMD.
    ///
    /// Arguments may contain secrets, so the default is the name alone. LEASEHOLD_SHOW_COMMAND is the default of all
    /// runs, and then `show_command` in leasehold.toml for all that use the store in that file. At most 200 bytes.
    #[arg(long, value_name = "none|name|line", value_enum)]
    pub(crate) show_command: Option<ShowCommand>,

    /// Pass the password of the store to CMD.
    ///
    /// If LEASEHOLD_PASSWORD is set, or LEASEHOLD_STORE contains a password, CMD gets neither of them, and a
    /// leasehold that CMD calls fails with 64. With this option CMD gets both. A URL with password_file=FILE
    /// contains no password, and CMD always gets it.
    #[arg(long)]
    pub(crate) pass_store: bool,

    /// Append own events to FILE as JSON, as --json prints them.
    ///
    /// Messages for people go to stderr as ever. FILE may be a descriptor, such as /dev/fd/3.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) json_file: Option<PathBuf>,
}

impl CommandArgs {
    /// The command as others see it.
    pub(crate) fn shown(
        &self,
        command: &[OsString],
        defaults: Defaults,
    ) -> Result<Option<String>, Failure> {
        Ok(match defaults.show_command(self.show_command)? {
            ShowCommand::None => None,
            ShowCommand::Name => Some(line(&command[..command.len().min(1)])),
            ShowCommand::Line => Some(line(command)),
        })
    }
}

/// A command as a shell would take it, roughly.
fn line(command: &[OsString]) -> String {
    let words = command.iter().map(|word| {
        let word = word.to_string_lossy();
        match word.is_empty() || word.contains(char::is_whitespace) {
            true => format!("'{word}'"),
            false => word.into_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn label(text: &str) -> Result<String, String> {
    let most = ClientInfo::LABEL_MAX;
    if text.is_empty() || text.len() > most || text.contains(char::is_control) {
        return Err(format!(
            "a label has 1 to {most} bytes and no control characters"
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_spaces_are_quoted() {
        let command = ["sh", "-c", "sleep 5", ""].map(OsString::from);
        let shown = |show_command| {
            let args = CommandArgs {
                show_command,
                ..CommandArgs::default()
            };
            args.shown(&command, Defaults::default()).unwrap()
        };
        assert_eq!(
            shown(None).as_deref(),
            Some("sh"),
            "no arguments by default"
        );
        let line = shown(Some(ShowCommand::Line));
        assert_eq!(line.as_deref(), Some("sh -c 'sleep 5' ''"));
        assert_eq!(shown(Some(ShowCommand::None)), None);
    }

    #[test]
    fn long_label_is_refused_with_the_rule() {
        assert_eq!(label("nightly"), Ok("nightly".into()));
        for text in ["", "a\nb", &*"x".repeat(65)] {
            let error = label(text).unwrap_err();
            assert!(error.contains("1 to 64 bytes"), "{error}");
        }
    }
}
