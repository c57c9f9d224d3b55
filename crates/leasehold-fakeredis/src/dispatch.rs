//! Looks up commands and runs them, for clients, scripts, and transactions.

use crate::commands::{self, Command};
use crate::core::Core;
use crate::failure::{Failure, wrong_number};
use crate::reply::{Outcome, Reply};

/// Runs a command of a client or of a script.
pub(crate) fn run(core: &mut Core, args: &[&[u8]]) -> Outcome {
    match core.in_script {
        true => run_in_script(core, args),
        false => run_for_client(core, args),
    }
}

/// Runs a command, or queues it in the client's transaction.
fn run_for_client(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let name = args.first().ok_or("ERR empty command")?;
    let checked = check(core, name, args);
    if let Some(transaction) = &mut core.clients.of(core.caller).transaction {
        match &checked {
            Err(_) => transaction.is_broken = true,
            Ok(command) if command.is_about_transactions() => {}
            Ok(_) => {
                let args = args.iter().map(|arg| arg.to_vec());
                transaction.commands.push(args.collect());
                return Ok(Reply::Simple("QUEUED".into()));
            }
        }
    }
    match checked.and_then(|command| (command.run)(core, args)) {
        Err(failure) if name.eq_ignore_ascii_case(b"EXEC") => Err(abort(core, failure)),
        outcome => outcome,
    }
}

/// Ends a transaction that fails as a whole.
fn abort(core: &mut Core, failure: Failure) -> Failure {
    core.clients.of(core.caller).transaction = None;
    if failure.0.starts_with("ERR wrong") {
        let reason = failure.0.trim_start_matches("ERR ");
        return format!("EXECABORT Transaction discarded because of: {reason}").into();
    }
    failure
}

fn check(core: &mut Core, name: &[u8], args: &[&[u8]]) -> Result<&'static Command, Failure> {
    let command = commands::find(name).ok_or_else(|| unknown(name, args))?;
    if !command.takes(args.len()) {
        return Err(wrong_number(&command.lower_name()));
    }
    if !core.denied.is_empty() && core.denied.contains(command.name) {
        let name = command.lower_name();
        let text = format!("NOPERM this user has no permissions to run the '{name}' command");
        return Err(text.into());
    }
    let caller = core.clients.of(core.caller);
    if !caller.is_resp3 && !caller.channels.is_empty() && !command.runs_while_subscribed() {
        let text = format!(
            "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
             RESET are allowed in this context",
            command.lower_name()
        );
        return Err(text.into());
    }
    Ok(command)
}

fn run_in_script(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let name = args.first().ok_or(NO_ARGUMENT)?;
    let command = commands::find(name).ok_or(UNKNOWN_IN_SCRIPT)?;
    if !command.takes(args.len()) {
        return Err(WRONG_NUMBER_IN_SCRIPT);
    }
    if !command.in_scripts {
        return Err(NOT_IN_SCRIPTS);
    }
    if !core.denied.is_empty() && core.denied.contains(command.name) {
        return Err(DENIED_IN_SCRIPT);
    }
    (command.run)(core, args)
}

macro_rules! failures {
    ($($name:ident: $text:literal;)*) => {
        $(const $name: Failure = Failure(std::borrow::Cow::Borrowed($text));)*
    };
}

failures! {
    NO_ARGUMENT: "ERR Please specify at least one argument for this redis lib call";
    UNKNOWN_IN_SCRIPT: "ERR Unknown Redis command called from script";
    WRONG_NUMBER_IN_SCRIPT: "ERR Wrong number of args calling Redis command from script";
    NOT_IN_SCRIPTS: "ERR This Redis command is not allowed from script";
    DENIED_IN_SCRIPT: "ERR The user executing the script can't run this command or subcommand";
}

fn unknown(name: &[u8], args: &[&[u8]]) -> Failure {
    let name = String::from_utf8_lossy(name);
    let args = args[1..].iter().map(|arg| String::from_utf8_lossy(arg));
    let args: String = args.map(|arg| format!("'{arg}' ")).collect();
    format!("ERR unknown command '{name}', with args beginning with: {args}").into()
}
