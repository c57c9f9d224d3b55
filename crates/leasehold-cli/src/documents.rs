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

/// Prints the manual page of the program, or of the verb that `words` name.
pub(crate) fn manual(words: &[String]) -> Result<ExitCode, Failure> {
    let mut program = Cli::command();
    program.build();
    let version = program.render_version().trim_end().to_owned();
    let command = page_of(program, words)?;
    let mut page = Vec::new();
    Man::new(command)
        .source(version)
        .render(&mut page)
        .map_err(|error| Failure::of_stdout(&error))?;
    print(page)
}

/// Verbs may have verbs of their own, as `fence check`.
fn page_of(program: Command, words: &[String]) -> Result<Command, Failure> {
    let mut command = program;
    for (number, word) in words.iter().enumerate() {
        let Some(found) = command.find_subcommand(word) else {
            let named = words[..=number].join(" ");
            let names: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
            let rule = match names.as_slice() {
                [] => format!("{} has none", words[..number].join(" ")),
                names => format!("one of {}", names.join(", ")),
            };
            return Err(Failure::usage(format!(
                "there is no verb {named:?}: {rule}"
            )));
        };
        command = found.clone();
    }
    Ok(command)
}

fn print(text: Vec<u8>) -> Result<ExitCode, Failure> {
    output::print(&String::from_utf8_lossy(&text)).map_err(|error| Failure::of_stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}
