use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::unistd::Pid;

use crate::guardian::args::GuardianArgs;
use crate::locks::outer_runs::{self, OuterRuns};
use crate::process::terminal::Terminal;
use crate::system::raw;

/// CMD, ready to be started by the guardian.
pub(super) fn command(args: &GuardianArgs) -> Command {
    let (program, arguments) = match args.command.split_first() {
        Some((program, arguments)) => (program.as_os_str(), arguments),
        None => ("".as_ref(), &[][..]),
    };
    let mut command = Command::new(program);
    let group_guardian = args.nested_in.map_or(Pid::this(), Pid::from_raw);
    command.args(arguments).env(
        outer_runs::VARIABLE,
        OuterRuns::variable_below(group_guardian),
    );
    if args.nested_in.is_none() {
        command.process_group(0);
    }
    let tty = args.foreground.then(Terminal::open).flatten();
    raw::bind_to_this_process(&mut command, tty.map(Terminal::into_fd));
    command
}
