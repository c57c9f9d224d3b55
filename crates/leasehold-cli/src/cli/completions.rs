use clap_complete::Shell;

use crate::cli;
use crate::output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;

/// Prints the completions for `shell`.
pub(crate) fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::program(), "leasehold", &mut script);
    output::print(&String::from_utf8_lossy(&script)).map_err(|error| Failure::of_stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}
