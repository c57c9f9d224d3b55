use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Cli;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output;

/// Prints the completions for `shell`.
pub(crate) fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "leasehold", &mut script);
    print(script)
}

/// Prints the manual page of the program, or of one verb.
pub(crate) fn manual(verb: Option<&str>) -> Result<ExitCode, Failure> {
    let mut program = Cli::command();
    program.build();
    let version = program.render_version().trim_end().to_owned();
    let command = match verb {
        None => program,
        Some(verb) => page_of(&program, verb)?,
    };
    let mut page = Vec::new();
    Man::new(command)
        .source(version)
        .render(&mut page)
        .map_err(|error| Failure::of_stdout(&error))?;
    print(page)
}

fn page_of(program: &Command, verb: &str) -> Result<Command, Failure> {
    let found = program
        .get_subcommands()
        .find(|command| command.get_name() == verb);
    match found {
        Some(command) => Ok(command.clone()),
        None => {
            let names: Vec<_> = program.get_subcommands().map(Command::get_name).collect();
            let text = format!("there is no verb {verb:?}: one of {}", names.join(", "));
            Err(Failure::usage(text))
        }
    }
}

fn print(text: Vec<u8>) -> Result<ExitCode, Failure> {
    output::print(&String::from_utf8_lossy(&text)).map_err(|error| Failure::of_stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}
