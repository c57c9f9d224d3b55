//! The defaults for the options of locks, which the environment and the configuration file may set.

use std::time::Duration;

use crate::options::show_command::ShowCommand;
use crate::options::span::{span, wait_span};
use crate::output::failure::Failure;

/// What the configuration file says about locks. It applies to the store in that file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Defaults {
    pub(crate) ttl: Option<Duration>,
    pub(crate) wait: Option<Duration>,
    pub(crate) show_command: Option<ShowCommand>,
    pub(crate) record_end: bool,
}

impl Defaults {
    /// The TTL: the option, then LEASEHOLD_TTL, then the file. Without any, the library chooses.
    pub(crate) fn ttl(self, given: Option<Duration>) -> Result<Option<Duration>, Failure> {
        match given {
            None => Ok(variable("LEASEHOLD_TTL", span)?.or(self.ttl)),
            given => Ok(given),
        }
    }

    /// The maximum time to wait: the option, then LEASEHOLD_WAIT, then the file, otherwise no limit.
    pub(crate) fn wait(
        self,
        given: Option<Duration>,
        no_wait: bool,
    ) -> Result<Option<Duration>, Failure> {
        match given {
            None if !no_wait => Ok(variable("LEASEHOLD_WAIT", wait_span)?.or(self.wait)),
            given => Ok(given),
        }
    }

    /// What others see of a command: the option, then LEASEHOLD_SHOW_COMMAND, then the file, otherwise the name.
    pub(crate) fn show_command(self, given: Option<ShowCommand>) -> Result<ShowCommand, Failure> {
        if let Some(given) = given {
            return Ok(given);
        }
        let known = variable("LEASEHOLD_SHOW_COMMAND", ShowCommand::parse)?.or(self.show_command);
        Ok(known.unwrap_or(ShowCommand::Name))
    }
}

/// The value of a variable. An empty one counts as not set.
fn variable<T>(
    name: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Failure> {
    let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let parsed = match value.to_str() {
        Some(text) => parse(text),
        None => Err("it is not valid UTF-8".into()),
    };
    let refuse = |rule| Failure::usage(format!("{name} is {value:?}: {rule}"));
    parsed.map(Some).map_err(refuse)
}
