use std::sync::Arc;

use leasehold::{ClientInfo, Error, ErrorKind, MemberId, RunId};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::connection::{broken, unreadable};
use super::info::ServerInfo;
use super::socket::Stream;
use crate::connection::{Refusal, Rights, Tls};
use crate::protocol::{SAMPLE_COMMANDS, Sampler, encode_sample};
use crate::resp::{CommandWriter, Parser, Value};
use crate::url::{Login, RedisUrl};
use crate::wire::{client_record, inbox};

/// What it takes to open a connection to one member.
#[derive(Debug)]
pub(super) struct Entrance {
    pub(super) url: RedisUrl,
    pub(super) tls: Arc<Tls>,
    pub(super) client: Arc<ClientInfo>,
    /// The last connection: the run of the server, and the server's number for the connection.
    pub(super) previous: Option<(RunId, i64)>,
    /// Whether the log has the reason why the server cannot notify the client.
    pub(super) complained: bool,
}

/// An open connection.
pub(super) struct Opened {
    pub(super) stream: Stream,
    pub(super) parser: Parser,
    pub(super) run: RunId,
}

/// How long the server keeps the record of a client, which the client writes again much sooner.
const CLIENT_RECORD_MS: u64 = 4 * 60 * 1000;

impl Entrance {
    pub(super) fn member(&self) -> &MemberId {
        &self.url.id
    }

    /// Connects, logs in, and checks that the server can be a member.
    ///
    /// # Errors
    ///
    /// The reason why there is no connection. Nothing was sent that could take effect late.
    pub(super) async fn open(&mut self) -> Result<Opened, Error> {
        let mut dialog = self.greet().await?;
        let user = Login::shown(self.url.login.as_ref()).to_owned();
        let database = self.url.database;
        let replies = dialog
            .ask(|writer| {
                if database != 0 {
                    writer.command("SELECT").number(u64::from(database));
                }
                for section in ServerInfo::SECTIONS {
                    writer.command("INFO").arg(section);
                }
                writer.command("CLIENT").arg("SETNAME").arg("leasehold");
                writer.command("CLIENT").arg("ID");
            })
            .await?;
        let (selected, replies) = replies.split_at(usize::from(database != 0));
        if let [Value::Error { code, message }] = selected {
            return Err(Refusal::new(code, message).to_error(&user, Rights("+select")));
        }
        let info = ServerInfo::read(&replies[..ServerInfo::SECTIONS.len()], &user)?;
        info.check()?;
        let number = replies.last().and_then(Value::as_integer);
        self.forget_previous(&mut dialog, &info.run).await?;
        self.register(&mut dialog, &user).await?;
        self.previous = number.map(|number| (info.run.clone(), number));
        Ok(Opened {
            stream: dialog.stream,
            parser: dialog.parser,
            run: info.run,
        })
    }

    /// Logs in with the newest protocol that the server speaks.
    async fn greet(&mut self) -> Result<Dialog, Error> {
        let mut dialog = Dialog::open(&self.url, &self.tls).await?;
        let user = Login::shown(self.url.login.as_ref()).to_owned();
        let login = self.url.login.clone();
        let greeting = |writer: &mut CommandWriter<'_>| {
            writer.command("HELLO").arg("3");
            if let Some(login) = &login {
                writer.arg("AUTH").arg(&user).arg(&login.password);
            }
        };
        let replies = dialog.ask(greeting).await?;
        let [Value::Error { code, message }] = replies.as_slice() else {
            return Ok(dialog);
        };
        let refusal = Refusal::new(code, message);
        if !refuses_resp3(code, message) {
            return Err(refusal.to_error(&user, Rights("+hello")));
        }
        self.complain("the server does not speak RESP3");
        let mut dialog = Dialog::open(&self.url, &self.tls).await?;
        let Some(login) = login else {
            return Ok(dialog);
        };
        let greeting = |writer: &mut CommandWriter<'_>| {
            writer.command("AUTH");
            if let Some(user) = &login.user {
                writer.arg(user);
            }
            writer.arg(&login.password);
        };
        match dialog.ask(greeting).await?.as_slice() {
            [Value::Error { code, message }] => {
                // A server without a password says so in words only.
                let code = if code == "ERR" { "WRONGPASS" } else { code };
                Err(Refusal::new(code, message).to_error(&user, Rights("+auth")))
            }
            _ => Ok(dialog),
        }
    }

    /// Asks the server to close the last connection, so that it drops what it did not execute. Closing the
    /// socket drops only what was not delivered.
    async fn forget_previous(&mut self, dialog: &mut Dialog, run: &RunId) -> Result<(), Error> {
        let Some((_, number)) = self.previous.as_ref().filter(|(last, _)| last == run) else {
            return Ok(());
        };
        let number = number.to_string();
        let replies = dialog
            .ask(|writer| {
                writer.command("CLIENT").arg("KILL").arg("ID").arg(&number);
            })
            .await?;
        if let Some(Value::Error { code, .. }) = replies.first() {
            tracing::debug!(%code, "the server may not close the last connection");
        }
        Ok(())
    }

    /// Subscribes to the client's notifications, says who the client is, and makes sure that the server
    /// shows its clock with each batch.
    async fn register(&mut self, dialog: &mut Dialog, user: &str) -> Result<(), Error> {
        let client = Arc::clone(&self.client);
        let mut sample = Vec::new();
        encode_sample(&mut sample);
        if let [time, mark] = dialog
            .ask_written(sample, SAMPLE_COMMANDS)
            .await?
            .as_slice()
        {
            Sampler::new(RunId::new(""), user).read(time, mark)?;
        }
        let replies = dialog
            .ask(|writer| {
                writer.command("SUBSCRIBE").arg(inbox(client.id));
                write_client_record(&client, writer);
            })
            .await?;
        if let Some(Value::Error { code, message }) = replies.first() {
            let error = Refusal::new(code, message).to_error(user, Rights("+subscribe"));
            self.complain(error.reason());
        }
        Ok(())
    }

    /// Logs once why waiters of this client are not notified.
    fn complain(&mut self, reason: &str) {
        if !self.complained {
            self.complained = true;
            let member = &self.url.id;
            tracing::warn!(%member, %reason, "waiters are not notified, and poll instead");
        }
    }
}

/// Writes who the client is, for people who look at a lock.
pub(super) fn write_client_record(client: &ClientInfo, writer: &mut CommandWriter<'_>) {
    let record = client_record(client.id);
    writer.command("HSET").arg(&record);
    writer.arg("host").arg(&client.host);
    writer.arg("pid").number(u64::from(client.pid));
    writer.arg("program").arg(&client.program);
    writer.arg("since").number(client.since.as_micros());
    writer
        .command("PEXPIRE")
        .arg(&record)
        .number(CLIENT_RECORD_MS);
}

/// Whether a server, or a proxy in front of it, refuses to speak RESP3.
fn refuses_resp3(code: &str, message: &str) -> bool {
    match code {
        "NOPROTO" | "NOPERM" => true,
        "ERR" => message.starts_with("unknown command"),
        _ => false,
    }
}

/// Questions and replies, one write after the other.
struct Dialog {
    stream: Stream,
    parser: Parser,
}

impl Dialog {
    async fn open(url: &RedisUrl, tls: &Tls) -> Result<Self, Error> {
        Ok(Self {
            stream: Stream::open(url, tls).await?,
            parser: Parser::new(),
        })
    }

    async fn ask(
        &mut self,
        write: impl FnOnce(&mut CommandWriter<'_>),
    ) -> Result<Vec<Value>, Error> {
        let mut bytes = Vec::new();
        let mut writer = CommandWriter::new(&mut bytes);
        write(&mut writer);
        let commands = writer.finish();
        self.ask_written(bytes, commands).await
    }

    async fn ask_written(&mut self, bytes: Vec<u8>, commands: usize) -> Result<Vec<Value>, Error> {
        let written = self.stream.write_all(&bytes).await;
        written.map_err(|error| broken(&error))?;
        self.stream.flush().await.map_err(|error| broken(&error))?;
        let mut replies = Vec::with_capacity(commands);
        while replies.len() < commands {
            match self.parser.next_value().map_err(unreadable)? {
                // A push confirms the subscription.
                Some(Value::Push(parts)) if is_subscribed(&parts) => {
                    replies.push(Value::Push(parts));
                }
                Some(Value::Push(_)) => {}
                Some(value) => replies.push(value),
                None => self.read().await?,
            }
        }
        Ok(replies)
    }

    async fn read(&mut self) -> Result<(), Error> {
        let count = self.stream.read(self.parser.room()).await;
        match count.map_err(|error| broken(&error))? {
            0 => Err(Error::new(
                ErrorKind::Unreachable,
                "the server closed the connection",
            )),
            count => {
                self.parser.filled(count);
                Ok(())
            }
        }
    }
}

fn is_subscribed(parts: &[Value]) -> bool {
    parts.first().and_then(Value::as_text) == Some("subscribe")
}
