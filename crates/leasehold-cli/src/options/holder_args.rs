use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use leasehold::store::ClientInfo;

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
    /// Hide CMD from the other users of the store.
    ///
    /// Without it, every user of the store can read the first 200 bytes of CMD and its arguments. Use it if
    /// they contain a secret. LEASEHOLD_NO_COMMAND=1 does the same for all runs, and `no_command = true` in
    /// leasehold.toml for all that use the store in that file.
    #[arg(long)]
    pub(crate) no_command: bool,

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
    pub(crate) fn shown(&self, command: &[OsString]) -> Option<String> {
        let variable = std::env::var_os("LEASEHOLD_NO_COMMAND");
        let is_set = variable.is_some_and(|value| value != "0" && !value.is_empty());
        (!self.no_command && !is_set).then(|| line(command))
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
        let mut args = CommandArgs::default();
        let shown = args.shown(&command);
        assert_eq!(shown.as_deref(), Some("sh -c 'sleep 5' ''"));
        args.no_command = true;
        assert_eq!(args.shown(&command), None);
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
