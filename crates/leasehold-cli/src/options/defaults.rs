//! The defaults for the options of locks, which the environment may set.

use std::time::Duration;

use crate::options::span::{span, wait_span};
use crate::output::failure::Failure;

/// The TTL: the option, then LEASEHOLD_TTL, then 30 s.
pub(crate) fn ttl(given: Option<Duration>) -> Result<Duration, Failure> {
    Ok(match given {
        Some(ttl) => ttl,
        None => variable("LEASEHOLD_TTL", span)?.unwrap_or(TTL),
    })
}

/// The maximum time to wait: the option, then LEASEHOLD_WAIT, otherwise no limit.
pub(crate) fn wait(given: Option<Duration>, no_wait: bool) -> Result<Option<Duration>, Failure> {
    match given {
        None if !no_wait => variable("LEASEHOLD_WAIT", wait_span),
        given => Ok(given),
    }
}

/// The value of a variable. An empty one counts as not set.
fn variable(
    name: &str,
    parse: impl Fn(&str) -> Result<Duration, String>,
) -> Result<Option<Duration>, Failure> {
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

const TTL: Duration = Duration::from_secs(30);
