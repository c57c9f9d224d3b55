//! Data on a Redis server that refuses the writes of a late holder.

use std::fmt;
use std::time::Duration;

use leasehold::env::Env;
use leasehold::fencing::Fenced;
use leasehold::store::{BoxFuture, exact_span};
use leasehold::{Error, ErrorKind, Fence, Key};

use crate::admin::Server;
use crate::codec::{Rights, hash_tag, invalid_response, is_wrong_type, milliseconds, refused};
use crate::resp::{CommandWriter, Value};
use crate::scripts::Script;
use crate::url::RedisUrl;

/// The script behind [`FencedKey`], for programs that write their data through a client of their own. It
/// runs one command on a key if the fence is not too small.
///
/// Call it as `EVAL script 2 KEY RECORD FENCE [COMMAND [ARGUMENT …]]`. RECORD is [`fence_record`]`(KEY)`,
/// and the command is any command whose first argument is the key:
///
/// ```text
/// EVAL "…" 2 invoice:7 leasehold:fenced:{invoice:7}:invoice:7 1763637400000001 SET paid
/// EVAL "…" 2 invoice:7 leasehold:fenced:{invoice:7}:invoice:7 1763637400000001 HSET total 9
/// EVAL "…" 2 invoice:7 leasehold:fenced:{invoice:7}:invoice:7 1763637400000001
/// ```
///
/// The last call fences off earlier holders: it remembers the fence and writes nothing. The answer is a list: either `1`
/// and the answer of the command, or `0` and the greatest fence. In the second case nothing was written.
///
/// Both keys are in one slot, so the script works on a Redis Cluster, too. There is no such record for a
/// key that contains a `}` but has no hash tag; a cluster refuses the call (`CROSSSLOT`).
pub const FENCED_SCRIPT: &str = include_str!("fenced.lua");

/// Returns the name of the key that remembers the greatest fence shown for `key`:
/// `leasehold:fenced:{TAG}:KEY`. TAG is the hash tag of the key if it has one, otherwise the key itself.
pub fn fence_record(key: &str) -> String {
    format!("leasehold:fenced:{{{}}}:{key}", &key[hash_tag(key)])
}

static SCRIPT: Script = Script::new("fenced", FENCED_SCRIPT);

/// What the script itself needs, in addition to the right to the command that it runs.
const RIGHTS: Rights = Rights("+evalsha +script|load +get +set +pttl +pexpire, and the command's");

/// The script's own error code for a record that another program has written. `fenced.lua` has it, too.
const BAD_RECORD: &str = "BADRECORD";

/// A Redis or Valkey server with data that fences protect. It need not be a server that grants the lock.
///
/// It connects lazily: the first call opens the connection, and later calls open it again if it broke. It
/// works on any executor, through a thread of its own. All its keys share the connection and the thread.
///
/// # What it protects, and what not
///
/// A [`FencedKey`] refuses every write that shows a smaller fence than one shown before, in one step with
/// the write. It cannot refuse a client that writes to the key in another way. Its memory of fences is as
/// durable as the server's data: a failover or a restart that loses the last writes may lose a fence, too,
/// and one that loses all data loses all fences. `maxmemory` with a policy other than `noeviction` may
/// evict the record before the data.
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> Result<(), leasehold::Error> {
/// use leasehold::Client;
/// use leasehold_redis::{FencedRedis, RedisStore};
///
/// let locks = Client::new(RedisStore::new(["redis://10.0.0.1"])?);
/// let invoice = FencedRedis::new("redis://10.0.0.9")?.key("invoice:7")?;
///
/// let guard = locks.lock("invoice:7").acquire().await?;
/// guard.fence_off(&invoice).await?; // shuts out whoever held the lock before
/// match invoice.set(guard.fence(), "paid").await {
///     Err(error) if error.is_fenced() => println!("somebody else holds the lock by now"),
///     outcome => outcome?,
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct FencedRedis {
    server: Server,
}

impl FencedRedis {
    /// Returns the server at `url`, in the form that [`RedisMember::new`](crate::RedisMember::new) takes.
    /// `?prefix=` goes in front of every key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`], naming the value without its credentials, and the rule. This sends nothing.
    pub fn new(url: impl AsRef<str>) -> Result<Self, Error> {
        let url = RedisUrl::parse(url.as_ref())?;
        url.check_files()?;
        Ok(Self {
            server: Server::new(url, Env::default()),
        })
    }

    /// Returns the data under `name`. This sends nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if `name` is empty, or begins with `leasehold:` (after the prefix),
    /// which is reserved for the records of locks and fences.
    pub fn key(&self, name: impl AsRef<str>) -> Result<FencedKey, Error> {
        let name = name.as_ref();
        let data = format!("{}{name}", self.server.url().prefix);
        let broken = if name.is_empty() {
            "is empty"
        } else if data.starts_with(Key::RESERVED_PREFIX) {
            "begins with \"leasehold:\", where the records of locks and fences are"
        } else {
            return Ok(FencedKey {
                record: fence_record(&data),
                data,
                server: self.server.clone(),
            });
        };
        let message = format!("the fenced key {data:?} {broken}");
        Err(Error::new(ErrorKind::InvalidInput, message))
    }
}

impl fmt::Debug for FencedRedis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedRedis")
            .field("server", &self.server.url().id)
            .finish_non_exhaustive()
    }
}

/// One key of a [`FencedRedis`], whose writes show a fence.
///
/// The server refuses a write with [`ErrorKind::Fenced`] if a greater fence was shown for the key before.
/// Otherwise it writes and remembers the fence in one step. The data is a plain string under its own name,
/// which any client can read. A separate key has the fence (see [`fence_record`]). It outlives the data by
/// 7 days, unless another client changes when the data expires.
///
/// Its futures may be dropped at any time. It is then unknown whether the write took effect. If the server
/// carries it out late, it refuses it like any other late write.
#[derive(Clone)]
pub struct FencedKey {
    server: Server,
    data: String,
    record: String,
}

impl FencedKey {
    /// Writes `value`, which does not expire.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`] if a later holder showed its fence. Otherwise the errors of the connection and
    /// of the server, with [`Effect::Unknown`](leasehold::Effect::Unknown) if the write may have taken
    /// effect. Then repeat it, which the fence makes safe.
    pub async fn set(&self, fence: Fence, value: impl AsRef<[u8]>) -> Result<(), Error> {
        let command = vec![b"SET".to_vec(), value.as_ref().to_vec()];
        self.run(fence, command).await.map(drop)
    }

    /// Writes `value`, which expires after `ttl`. The shortest `ttl` is a millisecond.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set), and [`ErrorKind::InvalidInput`] for a shorter `ttl`.
    pub async fn set_for(
        &self,
        fence: Fence,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<(), Error> {
        if ttl < Duration::from_millis(1) {
            let message = format!("the TTL {} is shorter than a millisecond", exact_span(ttl));
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let ttl = milliseconds(ttl).to_string().into_bytes();
        let value = value.as_ref().to_vec();
        let command = vec![b"SET".to_vec(), value, b"PX".to_vec(), ttl];
        self.run(fence, command).await.map(drop)
    }

    /// Deletes the data, and returns whether there was any. The fence stays remembered.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub async fn delete(&self, fence: Fence) -> Result<bool, Error> {
        match self.run(fence, vec![b"DEL".to_vec()]).await? {
            Value::Integer(deleted) => Ok(deleted > 0),
            _ => Err(self.named(invalid_response("DEL"))),
        }
    }

    /// Returns the reply to `command` if the fence is accepted.
    async fn run(&self, fence: Fence, command: Vec<Vec<u8>>) -> Result<Value, Error> {
        if fence > Fence::MAX {
            let message = format!("the fence {fence} is above {}, the greatest", Fence::MAX);
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let call = |out: &mut CommandWriter<'_>| {
            out.command("EVALSHA").arg(SCRIPT.sha1()).number(2);
            out.arg(&self.data).arg(&self.record).number(fence.get());
            for part in &command {
                out.arg(part);
            }
        };
        let mut answers = self.server.call(&SCRIPT, call).await?;
        let answer = self.read(fence, answers.pop());
        answer.map_err(|error| self.named(error))
    }

    fn read(&self, fence: Fence, answer: Option<Value>) -> Result<Value, Error> {
        match answer {
            // Our commands do not depend on the type of the data, so the wrong type is that of the record.
            Some(Value::Error { code, message })
                if is_wrong_type(&code, &message) || code == BAD_RECORD =>
            {
                let damaged = format!("{:?} is not the record of a fence: delete it", self.record);
                Err(Error::new(ErrorKind::Corrupt, damaged))
            }
            Some(Value::Error { code, message }) => {
                Err(refused(&code, &message, self.server.user(), RIGHTS))
            }
            Some(Value::Array(mut parts)) => match parts.as_slice() {
                [Value::Integer(1), _] => Ok(parts.swap_remove(1)),
                [Value::Integer(0), greatest] => Err(Error::fenced(fence, read_fence(greatest))),
                _ => Err(invalid_response("a fenced write")),
            },
            _ => Err(invalid_response("a fenced write")),
        }
    }

    fn named(&self, error: Error) -> Error {
        error.with_store(self.server.url().id.to_string())
    }
}

impl Fenced for FencedKey {
    fn fence_off(&self, fence: Fence) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.run(fence, Vec::new()).await.map(drop) })
    }
}

impl fmt::Debug for FencedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedKey")
            .field("server", &self.server.url().id)
            .field("key", &self.data)
            .finish_non_exhaustive()
    }
}

fn read_fence(greatest: &Value) -> Option<Fence> {
    Fence::new(greatest.as_text()?.parse().ok()?)
}
