use leasehold::clock::{BootInstant, Clock, WallTime};
use leasehold::{Error, Presence, RunId};
use redis::aio::MultiplexedConnection;

use super::answer::{Answer, read_time};
use super::command::Command;
use super::failure::{Rights, connection_error};
use super::link::exchange;
use crate::presence;

/// How a connection is opened.
pub(super) struct Entrance {
    /// For messages.
    pub(super) user: String,
    /// Whether the server has answered something already: it then lets this user in.
    pub(super) greeted: bool,
    pub(super) database: u32,
}

/// What a server said about itself when a connection to it was opened.
pub(super) struct Opening {
    /// Drawn anew each time the server starts; a connection never outlives it.
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
    /// Asks the server who and how it is, and refuses one that cannot be a member. One exchange
    /// where the server has let the user in before, else two.
    pub(super) async fn ask(
        connection: &MultiplexedConnection,
        entrance: &Entrance,
        clock: &dyn Clock,
    ) -> Result<Self, Error> {
        let user = &entrance.user;
        let name = Command::new("CLIENT").arg("SETNAME").arg("leasehold");
        let mut questions = Vec::new();
        if entrance.greeted {
            questions.push(name);
        } else {
            // The first one alone, since the library forgets what was wrong with an answer to
            // several commands.
            let (mut alone, name) = (connection.clone(), name.into_inner());
            let named = alone.send_packed_command(&name).await;
            named.map_err(|error| connection_error(&error, user))?;
        }
        if entrance.database != 0 {
            questions.push(Command::new("SELECT").number(u64::from(entrance.database)));
        }
        questions.push(Command::new("CLIENT").arg("ID"));
        let greeting = questions.len();
        questions.extend(presence::questions());
        let asked = clock.now();
        let mut greetings = exchange(connection, questions, user).await?;
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
