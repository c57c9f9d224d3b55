use leasehold::clock::{BootInstant, Clock, WallTime};
use leasehold::{Error, Presence, RunId};

use super::answer::{Answer, read_time};
use super::command::Command;
use super::failure::Rights;
use super::line::Line;
use crate::presence;
use crate::url::Login;

/// How a connection is opened.
pub(super) struct Entrance {
    /// For messages.
    pub(super) user: String,
    pub(super) login: Option<Login>,
    pub(super) database: u32,
}

/// The protocols that servers speak. In the old one they say nothing unasked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Resp2,
    Resp3,
}

impl Entrance {
    /// Logs in on `line`; false where the server does not speak `protocol`.
    pub(super) async fn greet(&self, line: &Line, protocol: Protocol) -> Result<bool, Error> {
        let greeting = match (protocol, &self.login) {
            (Protocol::Resp3, None) => Command::new("HELLO").arg("3"),
            (Protocol::Resp3, Some(login)) => Command::new("HELLO")
                .arg("3")
                .arg("AUTH")
                .arg(&self.user)
                .arg(&login.password),
            (Protocol::Resp2, None) => return Ok(true),
            (Protocol::Resp2, Some(login)) => {
                let user = login.user.iter();
                let greeting = user.fold(Command::new("AUTH"), Command::arg);
                greeting.arg(&login.password)
            }
        };
        let answers = line.ask(&[greeting]).await?;
        match (answers.first(), protocol) {
            (Some(Answer::Refused(refusal)), Protocol::Resp3) if refusal.refuses_resp3() => {
                Ok(false)
            }
            (Some(Answer::Refused(refusal)), Protocol::Resp3) => {
                Err(refusal.to_error(&self.user, Rights("+hello")))
            }
            (Some(Answer::Refused(refusal)), Protocol::Resp2) => {
                Err(refusal.to_login_error(&self.user))
            }
            _ => Ok(true),
        }
    }
}

/// What a server said about itself when a connection to it was opened.
pub(super) struct Opening {
    /// Drawn anew each time the server starts. A direct connection never outlives it.
    pub(super) run: RunId,
    /// Whether SET may say NX and GET at once.
    pub(super) set_nx_get: bool,
    /// The number under which the server knows the connection, where it may be asked for.
    pub(super) number: Option<i64>,
    /// When it was asked.
    pub(super) asked: BootInstant,
    /// Its wall clock, where it may be asked.
    pub(super) clock: Option<WallTime>,
    pub(super) presence: Result<Presence, Error>,
}

impl Opening {
    /// Asks the server who and how it is, and refuses one that cannot be a member.
    pub(super) async fn ask(
        line: &Line,
        entrance: &Entrance,
        clock: &dyn Clock,
    ) -> Result<Self, Error> {
        let user = &entrance.user;
        let mut questions = vec![Command::new("CLIENT").arg("SETNAME").arg("leasehold")];
        if entrance.database != 0 {
            questions.push(Command::new("SELECT").number(u64::from(entrance.database)));
        }
        questions.push(Command::new("CLIENT").arg("ID"));
        let greeting = questions.len();
        questions.extend(presence::questions());
        let asked = clock.now();
        let mut greetings = line.ask(&questions).await?;
        let answers = greetings.split_off(greeting);
        let number = greetings.pop().and_then(|number| number.as_integer());
        if entrance.database != 0
            && let Some(Answer::Refused(refusal)) = greetings.pop()
        {
            return Err(refusal.to_error(user, Rights("+select")));
        }
        let info = presence::info(&answers, user)?;
        let set_nx_get = info.has_set_nx_get()?;
        info.check_role()?;
        Ok(Self {
            run: RunId::new(info.demand("run_id")?),
            set_nx_get,
            number,
            asked,
            clock: answers.last().and_then(read_time),
            presence: presence::read(&answers, user),
        })
    }
}
