use leasehold_instructions::FREE;
use leasehold_testkit::servers::{Reply, RespConnection};

use crate::error::Fallible;

/// The keys that any lock library writes, over sockets and nothing else: no fence, no clock, no queue. It asks one
/// server after the other.
pub(crate) struct BareKeys {
    servers: Vec<RespConnection>,
    sha: String,
}

const OWNER: &str = "0123456789abcdef.0123456789abcdef0123456789abcdef";

impl BareKeys {
    pub(crate) fn on(ports: &[u16]) -> Fallible<Self> {
        let (mut servers, mut sha) = (Vec::new(), String::new());
        for port in ports {
            let mut server = RespConnection::open(*port)?;
            match server.call(&["SCRIPT", "LOAD", FREE])? {
                Reply::Bulk(loaded) => sha = loaded,
                other => return Err(format!("SCRIPT LOAD: {other:?}").into()),
            }
            servers.push(server);
        }
        Ok(Self { servers, sha })
    }

    pub(crate) fn set_words(key: &str) -> [&str; 6] {
        ["SET", key, OWNER, "NX", "PX", "30000"]
    }

    pub(crate) fn delete_words<'a>(&'a self, key: &'a str) -> [&'a str; 5] {
        ["EVALSHA", &self.sha, "1", key, OWNER]
    }

    pub(crate) fn set(&mut self, key: &str) -> Fallible {
        let taken = Reply::Status("OK".into());
        for server in &mut self.servers {
            expect(&server.call(&Self::set_words(key))?, &taken)?;
        }
        Ok(())
    }

    pub(crate) fn delete(&mut self, key: &str) -> Fallible {
        for server in &mut self.servers {
            let words = ["EVALSHA", &self.sha, "1", key, OWNER];
            expect(&server.call(&words)?, &Reply::Integer(1))?;
        }
        Ok(())
    }
}

fn expect(reply: &Reply, right: &Reply) -> Fallible {
    if reply == right {
        Ok(())
    } else {
        Err(format!("a bare key: {reply:?} instead of {right:?}").into())
    }
}
