use std::env;
use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use leasehold::handle::Handle;

use crate::commands::holding::handle::args::HandleArgs;
use crate::output::Output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::message::Message;

/// The source of a handle. Never the arguments, which all users of the machine can read.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum HandleSource {
    File(PathBuf),
    /// The variable's value.
    Variable(String),
    Stdin,
}

impl HandleSource {
    pub(super) fn of(args: &HandleArgs, subcommand: &str) -> Result<Self, Failure> {
        if !args.bare.is_empty() || args.named.is_some() {
            // The argument may be a handle, so the error does not repeat it.
            return Err(Failure::usage(format!(
                "`{subcommand}` takes no arguments, because other users can read arguments (ps, /proc); pass the \
                 handle on stdin, in {VARIABLE} or with --handle-file"
            )));
        }
        if let Some(file) = &args.handle_file {
            if file.as_os_str().as_encoded_bytes().starts_with(PREFIX) {
                return Err(Failure::usage(format!(
                    "--handle-file of `{subcommand}` takes the path of a file, not a handle, because other \
                     users can read arguments (for a file of that name, use ./lh1_...)"
                )));
            }
            return Ok(Self::File(file.clone()));
        }
        match env::var_os(VARIABLE) {
            None => Ok(Self::Stdin),
            Some(value) => match value.into_string() {
                Ok(text) => Ok(Self::Variable(text)),
                Err(_) => Err(Failure::usage(format!("{VARIABLE} is not valid UTF-8"))),
            },
        }
    }

    /// The file, if it is one.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(file) => Some(file),
            Self::Variable(_) | Self::Stdin => None,
        }
    }

    pub(crate) fn read(&self, output: &Output) -> Result<Handle, Failure> {
        let text = match self {
            Self::File(path) => {
                let failed = |error: io::Error| {
                    let text = format!("cannot read {}: {error}", path.display());
                    Failure::new(ExitCode::IO, text)
                };
                let file = File::open(path).map_err(failed)?;
                let mode = file.metadata().map_err(failed)?.permissions().mode();
                if mode & OF_OTHERS != 0 {
                    let text = format!(
                        "{} is readable by other users, and its handle can release the lock; run chmod 600",
                        path.display()
                    );
                    output.print_message(&Message::Warning(&text));
                }
                limited(file).map_err(failed)?
            }
            Self::Variable(text) => text.clone(),
            Self::Stdin if io::stdin().is_terminal() => String::new(),
            Self::Stdin => limited(io::stdin().lock()).map_err(|error| {
                Failure::new(ExitCode::IO, format!("cannot read stdin: {error}"))
            })?,
        };
        let text = text.trim();
        if text.is_empty() {
            return Err(Failure::usage(format!(
                "no handle in {self}; pass it on stdin, in {VARIABLE} or with --handle-file"
            )));
        }
        text.parse()
            .map_err(|error: leasehold::Error| Failure::usage(format!("{self}: {error}")))
    }

    /// Removes the file, whose handle is no longer useful.
    pub(super) fn remove(&self) -> Result<(), Failure> {
        let Self::File(path) = self else {
            return Ok(());
        };
        fs::remove_file(path).map_err(|error| {
            let text = format!("cannot remove {}: {error}", path.display());
            Failure::new(ExitCode::IO, text)
        })
    }
}

impl std::fmt::Display for HandleSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Variable(_) => f.write_str(VARIABLE),
            Self::Stdin => f.write_str("stdin"),
        }
    }
}

/// Reads `source`, at most the length of a handle.
pub(super) fn limited(source: impl Read) -> io::Result<String> {
    let mut text = String::new();
    source.take(TEXT_MAX).read_to_string(&mut text)?;
    Ok(text)
}

const VARIABLE: &str = "LEASEHOLD_HANDLE";
/// The prefix of every handle.
const PREFIX: &[u8] = b"lh1_";
const TEXT_MAX: u64 = 4096;
const OF_OTHERS: u32 = 0o077;
