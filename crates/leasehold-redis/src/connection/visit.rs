use leasehold::Error;

use super::answer::Answer;
use super::command::Command;
use super::failure::Rights;
use super::line::Line;

/// A connection to a server of which nothing is known: it may be one that can be no member. For
/// looking at it; what is sent is the caller's.
pub(crate) struct Visit {
    line: Line,
    user: String,
    resp3: bool,
}

impl Visit {
    /// Goes on on `line` to a server that let `user` in.
    pub(super) async fn begin(
        line: Line,
        user: String,
        database: u32,
        resp3: bool,
    ) -> Result<Self, Error> {
        if database != 0 {
            let select = Command::new("SELECT").number(u64::from(database));
            if let [Answer::Refused(refusal)] = line.ask(&[select]).await?.as_slice() {
                return Err(refusal.to_error(&user, Rights("+select")));
            }
        }
        Ok(Self { line, user, resp3 })
    }

    /// Sends `commands` in one write and waits for all answers. What the server refuses is an
    /// answer too.
    pub(crate) async fn ask(&self, commands: &[Command]) -> Result<Vec<Answer>, Error> {
        self.line.ask(commands).await
    }

    /// The name of the user, for messages.
    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    /// Whether the server tells something unasked.
    pub(crate) fn speaks_resp3(&self) -> bool {
        self.resp3
    }
}
