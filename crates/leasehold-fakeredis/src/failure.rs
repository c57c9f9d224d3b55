use std::borrow::Cow;

/// The reason why a command fails: the text of the error reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure(pub(crate) Cow<'static, str>);

pub(crate) const SYNTAX: Failure = Failure(Cow::Borrowed("ERR syntax error"));
pub(crate) const WRONG_TYPE: Failure = Failure(Cow::Borrowed(
    "WRONGTYPE Operation against a key holding the wrong kind of value",
));
pub(crate) const NO_INTEGER: Failure =
    Failure(Cow::Borrowed("ERR value is not an integer or out of range"));
pub(crate) const NO_FLOAT: Failure = Failure(Cow::Borrowed("ERR value is not a valid float"));

impl From<&'static str> for Failure {
    fn from(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

/// The failure of a command, or of `command|subcommand`, with too few or too many arguments.
pub(crate) fn wrong_number(name: &str) -> Failure {
    format!("ERR wrong number of arguments for '{name}' command").into()
}
