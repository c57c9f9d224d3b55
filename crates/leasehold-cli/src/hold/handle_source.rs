use std::env;
use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use leasehold::Handle;

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::hold_args::HandleArgs;
use crate::message::Message;
use crate::output::Output;

/// Where a handle comes from. Never from the arguments of the command, which everybody can read.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum HandleSource {
    File(PathBuf),
    /// The variable's value.
    Variable(String),
    Stdin,
}

impl HandleSource {
    pub(super) fn of(args: &HandleArgs, verb: &str) -> Result<Self, Failure> {
        if !args.bare.is_empty() || args.named.is_some() {
            // What was given may be a handle: it is not repeated.
            return Err(Failure::usage(format!(
                "`{verb}` takes no handle and no name as an argument, for everybody can read \
                 arguments (ps, /proc): give the handle on stdin, in {VARIABLE} or by --handle-file"
            )));
        }
        if let Some(file) = &args.handle_file {
            if file.as_os_str().as_encoded_bytes().starts_with(PREFIX) {
                return Err(Failure::usage(format!(
                    "--handle-file of `{verb}` takes the path of a file, and what begins with lh1_ is \
                     a handle: everybody can read arguments (give a file of that name as ./lh1_...)"
                )));
            }
            return Ok(Self::File(file.clone()));
        }
        match env::var_os(VARIABLE) {
            None => Ok(Self::Stdin),
            Some(value) => match value.into_string() {
                Ok(text) => Ok(Self::Variable(text)),
                Err(_) => Err(Failure::usage(format!("{VARIABLE} is not UTF-8"))),
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

    pub(super) fn read(&self, output: &Output) -> Result<Handle, Failure> {
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
                        "{} can be read by others, and the handle in it frees the lock: chmod 600",
                        path.display()
                    );
                    output.say(&Message::Warning(&text));
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
                "no handle in {self}: give it on stdin, in {VARIABLE} or by --handle-file"
            )));
        }
        text.parse()
            .map_err(|error: leasehold::Error| Failure::usage(format!("{self}: {error}")))
    }

    /// Removes the file, whose handle is of no use any more.
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

/// The text of `source`, of which no more is read than a handle can be long.
fn limited(source: impl Read) -> io::Result<String> {
    let mut text = String::new();
    source.take(TEXT_MAX).read_to_string(&mut text)?;
    Ok(text)
}

const VARIABLE: &str = "LEASEHOLD_HANDLE";
/// What the text of every handle begins with.
const PREFIX: &[u8] = b"lh1_";
const TEXT_MAX: u64 = 4096;
const OF_OTHERS: u32 = 0o077;
