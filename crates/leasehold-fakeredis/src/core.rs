use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::clients::{Clients, ConnectionId};
use crate::commands::{self, Command};
use crate::identity::Identity;
use crate::keyspace::Keyspace;
use crate::reply::{Failure, Outcome, Reply};

/// The state of a server, as commands see it.
#[derive(Debug, Default)]
pub(crate) struct Core {
    pub(crate) keyspace: Keyspace,
    /// The clock, in microseconds. It does not advance within a command or script.
    pub(crate) now_us: u64,
    pub(crate) clients: Clients,
    /// The texts of scripts, by the SHA-1 of each in hexadecimal.
    pub(crate) scripts: BTreeMap<Vec<u8>, Arc<[u8]>>,
    /// The connection whose command runs.
    pub(crate) caller: ConnectionId,
    /// Whether a script runs. Its calls get RESP2 replies.
    pub(crate) in_script: bool,
    pub(crate) identity: Identity,
    /// The commands that the user may not run.
    pub(crate) denied: BTreeSet<String>,
}

impl Core {
    pub(crate) fn set_now(&mut self, now_us: u64) {
        self.now_us = now_us;
        self.keyspace.now_ms = (now_us / 1000) as i64;
    }

    /// Whether scores and pairs are sent in the form of RESP3.
    pub(crate) fn is_resp3(&mut self) -> bool {
        !self.in_script && self.clients.of(self.caller).is_resp3
    }

    /// Runs a command of a client, or queues it in the client's transaction.
    pub(crate) fn run(&mut self, args: &[&[u8]]) -> Reply {
        let Some(name) = args.first() else {
            return Failure::from("ERR empty command").into_reply();
        };
        let checked = self.check(name, args);
        if let Some(transaction) = &mut self.clients.of(self.caller).transaction {
            match &checked {
                Err(_) => transaction.is_broken = true,
                Ok(command) if command.is_about_transactions() => {}
                Ok(_) => {
                    let args = args.iter().map(|arg| arg.to_vec());
                    transaction.commands.push(args.collect());
                    return Reply::Simple("QUEUED".into());
                }
            }
        }
        match checked.and_then(|command| (command.run)(self, args)) {
            Err(Failure(text)) if name.eq_ignore_ascii_case(b"EXEC") => self.abort(&text),
            outcome => outcome.into(),
        }
    }

    /// Ends a transaction that fails as a whole.
    fn abort(&mut self, reason: &str) -> Reply {
        self.clients.of(self.caller).transaction = None;
        if reason.starts_with("ERR wrong") {
            let reason = reason.trim_start_matches("ERR ");
            return Reply::Error(
                format!("EXECABORT Transaction discarded because of: {reason}").into(),
            );
        }
        Reply::Error(reason.to_owned().into())
    }

    fn check(&mut self, name: &[u8], args: &[&[u8]]) -> Result<&'static Command, Failure> {
        let command = commands::find(name).ok_or_else(|| unknown(name, args))?;
        if !command.takes(args.len()) {
            return Err(wrong_number(&command.lower_name()));
        }
        if !self.denied.is_empty() && self.denied.contains(command.name) {
            let name = command.lower_name();
            let text = format!("NOPERM this user has no permissions to run the '{name}' command");
            return Err(text.into());
        }
        let caller = self.clients.of(self.caller);
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

    /// Runs a command of a script.
    pub(crate) fn run_in_script(&mut self, args: &[&[u8]]) -> Outcome {
        let name = args.first().ok_or(NO_ARGUMENT)?;
        let command = commands::find(name).ok_or(UNKNOWN_IN_SCRIPT)?;
        if !command.takes(args.len()) {
            return Err(WRONG_NUMBER_IN_SCRIPT);
        }
        if !command.in_scripts {
            return Err(NOT_IN_SCRIPTS);
        }
        if !self.denied.is_empty() && self.denied.contains(command.name) {
            return Err(DENIED_IN_SCRIPT);
        }
        (command.run)(self, args)
    }
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

/// The failure of a command, or of `command|subcommand`, with too few or too many arguments.
pub(crate) fn wrong_number(name: &str) -> Failure {
    format!("ERR wrong number of arguments for '{name}' command").into()
}

fn unknown(name: &[u8], args: &[&[u8]]) -> Failure {
    let name = String::from_utf8_lossy(name);
    let args = args[1..].iter().map(|arg| String::from_utf8_lossy(arg));
    let args: String = args.map(|arg| format!("'{arg}' ")).collect();
    format!("ERR unknown command '{name}', with args beginning with: {args}").into()
}
