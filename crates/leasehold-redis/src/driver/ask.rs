//! Raw requests of a caller to one member, past the engine.

use std::time::Duration;

use leasehold::Error;
use leasehold::store::LockRequest;
use leasehold_quorum::{MemberIndex, Reply, Request};
use tokio::sync::oneshot;

use super::{Driver, call};
use crate::codec::{Decoded, script_of};
use crate::connection::raw_request::RawRequest;
use crate::resp::{CommandWriter, Value};
use crate::scripts::Script;

/// How long a member may take for a request that is not of the engine.
const REQUEST_LIMIT: Duration = LockRequest::LIMIT_MAX;

impl Driver {
    /// Sends commands to one member, and returns one reply for each of them. A reply may be an error of the
    /// server.
    ///
    /// If the member is not connected, this waits for an attempt to connect, which begins at once.
    ///
    /// # Errors
    ///
    /// If that attempt fails, the connection breaks before the last reply, or `limit` is over. The commands
    /// may have an effect in the last two cases.
    ///
    /// # Cancel safety
    ///
    /// The commands are sent even if the future is dropped after its first poll.
    pub(crate) async fn ask_raw(
        &self,
        member: MemberIndex,
        limit: Duration,
        write: impl FnOnce(&mut CommandWriter<'_>),
    ) -> Result<Vec<Value>, Error> {
        let (bytes, commands) = written(write);
        self.send(member, limit, None, bytes, commands).await
    }

    /// Calls a script at one member. The member learns the script with its first call.
    ///
    /// `write` adds the commands; one of them is `EVALSHA`.
    ///
    /// # Errors
    ///
    /// As [`ask_raw`](Self::ask_raw).
    pub(crate) async fn ask_script(
        &self,
        member: MemberIndex,
        limit: Duration,
        script: &'static Script,
        write: impl FnOnce(&mut CommandWriter<'_>),
    ) -> Result<Vec<Value>, Error> {
        let (bytes, commands) = written(write);
        self.send_script(member, limit, script, bytes, commands)
            .await
    }

    /// Asks one member, past the engine.
    ///
    /// # Errors
    ///
    /// If the member does not reply.
    ///
    /// # Cancel safety
    ///
    /// The request is sent even if the future is dropped after its first poll.
    pub async fn ask(&self, member: MemberIndex, request: Request) -> Result<Reply, Error> {
        let Some(codec) = self.codecs.get(member) else {
            return Err(call::closed());
        };
        let mut bytes = Vec::new();
        let commands = codec.encode(&request, &mut bytes)?;
        let values = match script_of(&request) {
            Some(script) => {
                let sent = self.send_script(member, REQUEST_LIMIT, script, bytes, commands);
                sent.await?
            }
            None => {
                let sent = self.send(member, REQUEST_LIMIT, None, bytes, commands);
                sent.await?
            }
        };
        match codec.decode(&request, &values) {
            Decoded::Reply(reply) => Ok(reply),
            Decoded::NoScript(_) => Err(call::forgotten()),
        }
    }

    async fn send_script(
        &self,
        member: MemberIndex,
        limit: Duration,
        script: &'static Script,
        bytes: Vec<u8>,
        commands: usize,
    ) -> Result<Vec<Value>, Error> {
        let copy = bytes.clone();
        let values = self.send(member, limit, Some(script), bytes, commands);
        let values = values.await?;
        if !values.iter().any(|value| value.is_error("NOSCRIPT")) {
            return Ok(values);
        }
        // The server forgot the script. This time it is loaded first.
        let again = self.send(member, limit, Some(script), copy, commands);
        again.await
    }

    async fn send(
        &self,
        member: MemberIndex,
        limit: Duration,
        script: Option<&'static Script>,
        bytes: Vec<u8>,
        commands: usize,
    ) -> Result<Vec<Value>, Error> {
        if self.shared.is_forked() {
            return Err(call::forked());
        }
        if commands == 0 {
            return Ok(Vec::new());
        }
        let (sender, answer) = oneshot::channel();
        if self.shared.is_closed() {
            return Err(call::closed());
        }
        self.shared.update(|state, now| {
            let id = state.raw_requests.begin(now.instant, limit, sender);
            let request = RawRequest {
                id,
                bytes,
                commands,
                script,
            };
            state.connections[member].ask(request);
        });
        // It may be waiting for a raw request before it connects.
        self.shared.reading.task(member).wake();
        let answer = answer.await.unwrap_or_else(|_| Err(call::closed()));
        answer.map_err(|error| error.with_store(self.shared.members[member].to_string()))
    }
}

fn written(write: impl FnOnce(&mut CommandWriter<'_>)) -> (Vec<u8>, usize) {
    let mut bytes = Vec::new();
    let mut writer = CommandWriter::new(&mut bytes);
    write(&mut writer);
    let commands = writer.finish();
    (bytes, commands)
}
