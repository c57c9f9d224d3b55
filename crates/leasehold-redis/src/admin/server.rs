use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use leasehold::env::Env;
use leasehold::member::{MemberId, MemberSet};
use leasehold::store::LockRequest;
use leasehold::{Error, ErrorKind, Key};
use leasehold_quorum::views::check_members;
use leasehold_quorum::{MemberIndex, PerMember, Reply, Request};

use crate::codec::{Names, RIGHTS, Rights, member_record, refused};
use crate::driver::Driver;
use crate::resp::{CommandWriter, Value};
use crate::scripts::Script;
use crate::url::{RedisUrl, user_of};

/// Servers whose connections belong to one driver, which starts with the first request.
pub(crate) struct Servers {
    urls: PerMember<RedisUrl>,
    env: Env,
    driver: OnceLock<Arc<Driver>>,
}

/// One of several servers.
#[derive(Clone)]
pub(crate) struct Server {
    all: Arc<Servers>,
    number: MemberIndex,
}

/// How long a server may take to answer, as on the other stores.
pub(crate) const LIMIT: Duration = LockRequest::LIMIT_MAX;

/// The rights that a user needs to inspect locks.
pub(crate) const INSPECT_RIGHTS: Rights =
    Rights("+get +mget +pttl +type +exists +time +zrange +zscore +hgetall +scan");

impl Servers {
    /// Returns the servers in the order of their URLs. Sends nothing.
    pub(crate) fn start(urls: Vec<RedisUrl>, env: Env) -> Vec<Server> {
        let all = Arc::new(Self {
            urls: urls.into(),
            env,
            driver: OnceLock::new(),
        });
        let server = |number| Server {
            all: Arc::clone(&all),
            number,
        };
        all.urls.keys().map(server).collect()
    }

    /// Returns the same servers in the same order, on the connections of a client.
    pub(crate) fn on<'a>(
        driver: &Arc<Driver>,
        servers: impl Iterator<Item = &'a Server>,
    ) -> Vec<Server> {
        let mut servers: Vec<Server> = servers.cloned().collect();
        let of = |id: &MemberId| servers.iter().find(|server| server.id() == id);
        let found: Vec<&Server> = driver.members().iter().filter_map(of).collect();
        let Some(first) = found.first() else {
            return servers;
        };
        let all = Arc::new(Self {
            urls: found.iter().map(|server| server.url().clone()).collect(),
            env: first.env().clone(),
            driver: Arc::clone(driver).into(),
        });
        for server in &mut servers {
            let number = all.urls.position(|url| url.id == *server.id());
            *server = Server {
                all: Arc::clone(&all),
                number: number.unwrap_or(MemberIndex::FIRST),
            };
        }
        servers
    }

    fn driver(&self) -> Result<&Driver, Error> {
        if let Some(driver) = self.driver.get() {
            return Ok(driver);
        }
        let driver = Driver::without_engine(self.urls.raw.clone(), &self.env)?;
        // If another thread was faster, this driver is dropped.
        Ok(self.driver.get_or_init(|| Arc::new(driver)))
    }
}

impl Server {
    /// Returns a server with a thread of its own.
    pub(crate) fn new(url: RedisUrl, env: Env) -> Self {
        let all = Servers {
            urls: vec![url].into(),
            env,
            driver: OnceLock::new(),
        };
        Self {
            all: Arc::new(all),
            number: MemberIndex::FIRST,
        }
    }

    pub(crate) fn url(&self) -> &RedisUrl {
        &self.all.urls[self.number]
    }

    pub(crate) fn id(&self) -> &MemberId {
        &self.url().id
    }

    pub(crate) fn env(&self) -> &Env {
        &self.all.env
    }

    pub(crate) fn user(&self) -> &str {
        user_of(self.url().login.as_ref())
    }

    pub(crate) fn names<'k>(&self, key: &'k Key) -> Names<'k> {
        Names::new(&self.url().prefix, key)
    }

    /// Adds the address and the id of the server to an error.
    pub(crate) fn named(&self, error: Error) -> Error {
        error.with_store(self.id().to_string())
    }

    /// Sends a request that the engine defines: for the status and the member record.
    pub(crate) async fn request(&self, request: Request) -> Result<Reply, Error> {
        match self.all.driver()?.ask(self.number, request).await? {
            Reply::Failed(error) => Err(self.named(error)),
            reply => Ok(reply),
        }
    }

    /// Sends commands, and returns a reply for each. A reply may be an error of the server.
    pub(crate) async fn ask(
        &self,
        write: impl FnOnce(&mut CommandWriter<'_>),
    ) -> Result<Vec<Value>, Error> {
        let driver = self.all.driver()?;
        driver.ask_raw(self.number, LIMIT, write).await
    }

    /// Calls a script, once or several times.
    pub(crate) async fn call(
        &self,
        script: &'static Script,
        write: impl FnOnce(&mut CommandWriter<'_>),
    ) -> Result<Vec<Value>, Error> {
        let driver = self.all.driver()?;
        driver.ask_script(self.number, LIMIT, script, write).await
    }

    /// Works as [`ask`](Self::ask) does, but fails with any error of the server. Exception: if `types` is
    /// true, an error about the type of a key stays among the replies.
    pub(super) async fn inspect(
        &self,
        types: bool,
        write: impl FnOnce(&mut CommandWriter<'_>),
    ) -> Result<Vec<Value>, Error> {
        let values = self.ask(write).await?;
        for value in &values {
            if let Value::Error { code, message } = value
                && !(types && code == "WRONGTYPE")
            {
                let error = refused(code, message, self.user(), INSPECT_RIGHTS);
                return Err(self.named(error));
            }
        }
        Ok(values)
    }

    /// Checks that the server belongs to the quorum of these members. A user who may not read the record passes.
    pub(crate) async fn check_members(&self, ours: &MemberSet) -> Result<(), Error> {
        let answers = self.ask(member_record::ask).await?;
        let answer = answers
            .first()
            .ok_or_else(|| self.invalid_response("HGETALL"))?;
        match member_record::read(answer, self.user()) {
            Ok(record) => check_members(record.as_ref(), ours).map_err(|error| self.named(error)),
            Err(error) if error.kind() == ErrorKind::Refused => Ok(()),
            Err(error) => Err(self.named(error)),
        }
    }

    /// Returns the answer of a script unless it is an error. The script may have done part of its work.
    pub(super) fn accepted<'v>(&self, answer: Option<&'v Value>) -> Result<&'v Value, Error> {
        match answer {
            Some(Value::Error { code, message }) => {
                let error = refused(code, message, self.user(), RIGHTS);
                Err(self.named(error.with_unknown_effect()))
            }
            Some(answer) => Ok(answer),
            None => Err(self.invalid_response("a script")),
        }
    }

    pub(super) fn invalid_response(&self, what: &str) -> Error {
        self.named(crate::codec::invalid_response(what))
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may contain a password.
        f.debug_tuple("Server").field(self.id()).finish()
    }
}
