use std::sync::Arc;

use leasehold::clock::WallTime;
use leasehold::look::ClientInfo;
use leasehold::member::{MemberId, RunId};
use leasehold::{Error, ErrorKind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::socket::{Stream, broken, unreadable};
use super::tls::Tls;
use crate::codec::{Info, Rights, SAMPLE_COMMANDS, Sampler, encode_sample, inbox, refused};
use crate::resp::{CommandWriter, Parser, Value};
use crate::url::{Address, RedisUrl, user_of};

/// What it takes to open a connection to one member.
#[derive(Debug)]
pub(crate) struct Connector {
    pub(crate) url: RedisUrl,
    /// `None` without encryption.
    pub(crate) tls: Option<Arc<Tls>>,
    /// The client of the engine, if there is an engine.
    pub(crate) client: Option<Arc<ClientInfo>>,
    /// The last connection: the run of the server, and the server's number for the connection.
    previous: Option<(RunId, i64)>,
    /// Whether the log has the reason why the server cannot notify the client.
    complained: bool,
    /// Whether a server that may evict locks is refused here. In a quorum, the engine does that.
    pub(crate) refuses_eviction: bool,
}

/// An open connection.
pub(crate) struct Opened {
    pub(crate) stream: Stream,
    pub(crate) parser: Parser,
    pub(crate) run: RunId,
    /// Whether the server knows `SET` with `NX` and `GET` together.
    pub(crate) has_plain_commands: bool,
}

impl Connector {
    pub(crate) fn new(url: RedisUrl, client: Option<Arc<ClientInfo>>) -> Self {
        Self {
            tls: url.tls.clone().map(Tls::new).map(Arc::new),
            url,
            client,
            previous: None,
            complained: false,
            refuses_eviction: false,
        }
    }

    pub(crate) fn member(&self) -> &MemberId {
        &self.url.id
    }

    /// Connects, logs in, and checks that the server can be a member.
    ///
    /// # Errors
    ///
    /// The reason why there is no connection. Nothing was sent that could take effect late.
    pub(crate) async fn open(&mut self, wall: WallTime) -> Result<Opened, Error> {
        let mut dialog = self.greet().await?;
        let user = user_of(self.url.login.as_ref()).to_owned();
        let replies = dialog
            .ask(|writer| {
                Info::write(&Info::CHECKED, writer);
                writer.command("CLIENT").arg("SETNAME").arg("leasehold");
                writer.command("CLIENT").arg("ID");
            })
            .await?;
        let info = Info::read(&replies[..Info::CHECKED.len()], &user)?;
        info.check()?;
        if self.refuses_eviction {
            info.check_eviction()?;
        }
        let run = RunId::new(info.demand("run_id")?);
        let number = replies.last().and_then(Value::as_integer);
        self.forget_previous(&mut dialog, &run).await?;
        if let Some(client) = self.client.clone() {
            self.register(&client, &mut dialog, &user, wall).await?;
        }
        self.previous = number.map(|number| (run.clone(), number));
        Ok(Opened {
            stream: dialog.stream,
            parser: dialog.parser,
            has_plain_commands: info.has_plain_commands(),
            run,
        })
    }

    /// Connects, logs in and chooses the database of a server of any kind.
    pub(crate) async fn greet(&mut self) -> Result<Dialog, Error> {
        let mut dialog = self.log_in().await?;
        let database = self.url.database;
        if database != 0 {
            let select = |writer: &mut CommandWriter<'_>| {
                writer.command("SELECT").number(u64::from(database));
            };
            if let [Value::Error { code, message }] = dialog.ask(select).await?.as_slice() {
                let user = user_of(self.url.login.as_ref());
                return Err(refused(code, message, user, Rights("+select")));
            }
        }
        Ok(dialog)
    }

    /// Logs in with the newest protocol that the server speaks.
    async fn log_in(&mut self) -> Result<Dialog, Error> {
        let mut dialog = Dialog::open(&self.url, self.tls.as_deref()).await?;
        let user = user_of(self.url.login.as_ref()).to_owned();
        let login = match &self.url.login {
            Some(login) => Some((login.user.clone(), login.password.read().await?)),
            None => None,
        };
        let greeting = |writer: &mut CommandWriter<'_>| {
            writer.command("HELLO").arg("3");
            if let Some((_, password)) = &login {
                writer.arg("AUTH").arg(&user).arg(password);
            }
        };
        let replies = dialog.ask(greeting).await;
        let replies = replies.map_err(|error| self.suspect_tls(error))?;
        let [Value::Error { code, message }] = replies.as_slice() else {
            return Ok(dialog);
        };
        if !refuses_resp3(code, message) {
            return Err(refused(code, message, &user, Rights("+hello")));
        }
        self.complain("the server does not speak RESP3");
        let mut dialog = Dialog::open(&self.url, self.tls.as_deref()).await?;
        dialog.speaks_resp3 = false;
        let Some((named, password)) = login else {
            return Ok(dialog);
        };
        let greeting = |writer: &mut CommandWriter<'_>| {
            writer.command("AUTH");
            if !named.is_empty() {
                writer.arg(&named);
            }
            writer.arg(&password);
        };
        match dialog.ask(greeting).await?.as_slice() {
            [Value::Error { code, message }] => {
                // A server without a password says so in words only.
                let code = if code == "ERR" { "WRONGPASS" } else { code };
                Err(refused(code, message, &user, Rights("+auth")))
            }
            _ => Ok(dialog),
        }
    }

    /// Adds to the failure of the first request without TLS that the server may expect TLS. Then it closes the
    /// connection without a word.
    fn suspect_tls(&self, error: Error) -> Error {
        let is_plain = matches!(self.url.address, Address::Tcp { tls: false, .. });
        if !is_plain || error.kind() != ErrorKind::Unreachable {
            return error;
        }
        let reason = error.reason();
        let text =
            format!("{reason}; if this port expects TLS, use rediss:// in place of redis://");
        Error::new(ErrorKind::Unreachable, text)
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

    /// Subscribes to the client's notifications, and makes sure that the server shows its clock with each
    /// batch.
    async fn register(
        &mut self,
        client: &ClientInfo,
        dialog: &mut Dialog,
        user: &str,
        wall: WallTime,
    ) -> Result<(), Error> {
        let mut bytes = Vec::new();
        encode_sample(&mut bytes);
        let mut writer = CommandWriter::new(&mut bytes);
        // In the old protocol a connection that listens takes no other command.
        if dialog.speaks_resp3 {
            writer.command("SUBSCRIBE").arg(inbox(client.id));
        }
        let commands = SAMPLE_COMMANDS + writer.finish();
        let replies = dialog.ask_written(bytes, commands).await?;
        if let [time, epoch, ..] = replies.as_slice() {
            let sample = Sampler::new(RunId::new(""), user).read(time, epoch)?;
            // One client with a clock far ahead would raise the fences of all others.
            wall.check(Some(sample.clock))?;
        }
        if let Some(Value::Error { code, message }) = replies.last()
            && dialog.speaks_resp3
        {
            let error = refused(code, message, user, Rights("+subscribe"));
            self.complain(error.reason());
        }
        Ok(())
    }

    /// Logs once why waiters of this client are not notified.
    fn complain(&mut self, reason: &str) {
        if !self.complained && self.client.is_some() {
            self.complained = true;
            let member = &self.url.id;
            tracing::warn!(%member, %reason, "waiters are not notified, and poll instead");
        }
    }
}

/// Whether a server, or a proxy in front of it, refuses to speak RESP3.
fn refuses_resp3(code: &str, message: &str) -> bool {
    match code {
        "NOPROTO" | "NOPERM" => true,
        "ERR" => message.starts_with("unknown command"),
        _ => false,
    }
}

/// Requests and replies, one write after the other.
pub(crate) struct Dialog {
    stream: Stream,
    parser: Parser,
    pub(crate) speaks_resp3: bool,
}

impl Dialog {
    async fn open(url: &RedisUrl, tls: Option<&Tls>) -> Result<Self, Error> {
        Ok(Self {
            stream: Stream::open(url, tls).await?,
            parser: Parser::new(),
            speaks_resp3: true,
        })
    }

    pub(crate) async fn ask(
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
