use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::cli;
use crate::cli::help::{self, Section};
use crate::output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;

/// Prints the man page of the program, or of the subcommand `words`.
pub(crate) fn manual(words: &[String]) -> Result<ExitCode, Failure> {
    let mut program = cli::program();
    program.build();
    let version = program.render_version().trim_end().to_owned();
    let command = page_of(program, words)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let page = render(command, version, &help::sections(&words));
    print(page.map_err(|error| Failure::of_stdout(&error))?)
}

/// Writes the man pages of the program and of all subcommands to `folder`.
pub(crate) fn write_all(folder: &Path) -> Result<ExitCode, Failure> {
    let mut program = cli::program();
    program.build();
    let version = program.render_version().trim_end().to_owned();
    write_with_subcommands(folder, program, &version, &[])?;
    Ok(ExitCode::SUCCESS)
}

fn write_with_subcommands(
    folder: &Path,
    command: Command,
    version: &str,
    words: &[&str],
) -> Result<(), Failure> {
    for inner in command.get_subcommands() {
        let name = inner.get_name();
        if name != "help" && !inner.is_hide_set() {
            write_with_subcommands(folder, inner.clone(), version, &[words, &[name]].concat())?;
        }
    }
    let name = [&["leasehold"], words].concat().join("-");
    let file = folder.join(format!("{name}.1"));
    let page = render(command, version.to_owned(), &help::sections(words));
    page.and_then(|page| fs::write(&file, page))
        .map_err(|error| {
            let text = format!("cannot write the man page {}: {error}", file.display());
            Failure::new(ExitCode::IO, text)
        })
}

/// The page, with a section of its own for each of `sections`. In `--help` they are the text after the
/// options, which clap_mangen would print as one section named EXTRA.
fn render(command: Command, version: String, sections: &[Section]) -> io::Result<Vec<u8>> {
    let has_subcommands = command.has_subcommands();
    let man = Man::new(command).source(version);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_subcommands {
        man.render_subcommands_section(&mut page)?;
    }
    for section in sections {
        let mut roff = Roff::new();
        roff.control("SH", [section.title.to_uppercase().as_str()]);
        if let Some(code) = section.code {
            roff.control("nf", []);
            roff.text([roman(code)]);
            roff.control("fi", []);
        }
        for (term, what) in &section.rows {
            if !term.is_empty() {
                roff.control("TP", []);
                roff.text([bold(*term)]);
            }
            roff.text([roman(what.as_str())]);
        }
        roff.to_writer(&mut page)?;
    }
    Ok(page)
}

/// Finds a subcommand. It may be nested, as `fence check` is.
fn page_of(program: Command, words: &[String]) -> Result<Command, Failure> {
    let mut command = program;
    for (number, word) in words.iter().enumerate() {
        let Some(found) = command.find_subcommand(word) else {
            let named = words[..=number].join(" ");
            let names: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
            let rule = match names.as_slice() {
                [] => format!("{:?} has no subcommands", words[..number].join(" ")),
                names => format!("choose one of {}", names.join(", ")),
            };
            return Err(Failure::usage(format!("no subcommand {named:?}; {rule}")));
        };
        command = found.clone();
    }
    Ok(command)
}

fn print(text: Vec<u8>) -> Result<ExitCode, Failure> {
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}
