use std::fmt;

/// One command for the server.
#[derive(Clone)]
pub(crate) struct Command(redis::Cmd);

impl Command {
    pub(crate) fn new(name: &str) -> Self {
        Self(redis::cmd(name))
    }

    pub(crate) fn arg(mut self, value: impl AsRef<[u8]>) -> Self {
        self.0.arg(value.as_ref());
        self
    }

    pub(crate) fn number(mut self, value: u64) -> Self {
        self.0.arg(value);
        self
    }

    pub(super) fn into_inner(self) -> redis::Cmd {
        self.0
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments may be anything the caller named a lock, and are of no use in a log.
        f.write_str("Command")
    }
}

/// A Lua script, which a server keeps under the SHA-1 of its text until it is told to forget.
#[derive(Debug)]
pub(crate) struct Script {
    text: &'static str,
    sha1: String,
}

impl Script {
    pub(crate) fn new(text: &'static str) -> Self {
        Self {
            sha1: redis::Script::new(text).get_hash().to_owned(),
            text,
        }
    }

    pub(super) fn load(&self) -> Command {
        Command::new("SCRIPT").arg("LOAD").arg(self.text)
    }

    /// Has it run by a server that knows it: see [`Link::run`](super::Link::run).
    pub(crate) fn call(&self, keys: &[&str], arguments: &[impl AsRef<[u8]>]) -> Command {
        let mut call = Command::new("EVALSHA")
            .arg(&self.sha1)
            .number(keys.len() as u64);
        for key in keys {
            call = call.arg(key);
        }
        for argument in arguments {
            call = call.arg(argument);
        }
        call
    }
}
