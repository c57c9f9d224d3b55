use leasehold::Error;
use leasehold_quorum::Request;

use std::time::Duration;

use crate::codec::{Codec, UsualRequest, script_of};
use crate::scripts::Script;

/// Writes requests. The engine sends most requests to all members, so this keeps the bytes of the last one.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    /// Whether the bytes of a request are the same for all members.
    is_shared: bool,
    /// What is needed of the present request for each member.
    pub(crate) term: Option<Duration>,
    pub(crate) script: Option<&'static Script>,
    pub(crate) usual: Option<UsualRequest>,
    bytes: Vec<u8>,
    /// How many commands the bytes are, once the present request was written.
    commands: Option<usize>,
}

impl Encoder {
    /// Returns an encoder for members with these codecs.
    pub(crate) fn new<'a>(codecs: impl IntoIterator<Item = &'a Codec>) -> Self {
        let mut prefixes = codecs.into_iter().map(|codec| &codec.prefix);
        let first = prefixes.next();
        let mut others = prefixes.peekable();
        Self {
            is_shared: others.peek().is_some() && others.all(|other| Some(other) == first),
            ..Self::default()
        }
    }

    /// Begins the next request.
    pub(crate) fn begin(&mut self, request: &Request) {
        self.term = request.usable_ttl();
        self.script = script_of(request);
        self.usual = UsualRequest::of(request);
        self.commands = None;
        self.bytes.clear();
    }

    /// Writes the commands of the present request, and returns their number. On an error it writes nothing.
    pub(crate) fn encode(
        &mut self,
        codec: &Codec,
        request: &Request,
        out: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        if !self.is_shared {
            return codec.encode(request, out);
        }
        let commands = match self.commands {
            Some(commands) => commands,
            None => codec.encode(request, &mut self.bytes)?,
        };
        self.commands = Some(commands);
        out.extend_from_slice(&self.bytes);
        Ok(commands)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use leasehold::Key;
    use leasehold::clock::WallTime;
    use leasehold::env::Env;
    use leasehold::look::{ClientId, Owner};
    use leasehold::store::LockRequest;

    use super::*;

    fn codec(prefix: &str) -> Codec {
        Codec {
            prefix: prefix.into(),
            user: "ann".into(),
            client: client(),
        }
    }

    fn client() -> ClientId {
        "0123456789abcdef".parse().unwrap()
    }

    fn free(key: &str) -> Request {
        let info = Env::default().this_process(None);
        let info = Arc::new(info);
        let owner = format!("{}.{:032x}", client(), key.len());
        let owner: Owner = owner.parse().unwrap();
        let (key, ttl) = (Key::new(key).unwrap(), Duration::from_secs(1));
        let lock_request = LockRequest::new(key, owner, ttl, WallTime::from_micros(1), info);
        Request::Free {
            lock_request: Arc::new(lock_request),
        }
    }

    #[test]
    fn same_bytes_as_without_sharing() {
        for prefixes in [["", "", ""], ["a:", "a:", "a:"], ["", "a:", ""]] {
            let codecs = prefixes.map(codec);
            let mut encoder = Encoder::new(&codecs);
            for request in [free("x"), free("longer"), Request::Status] {
                encoder.begin(&request);
                for codec in &codecs {
                    let (mut shared, mut own) = (b"-".to_vec(), b"-".to_vec());
                    let commands = encoder.encode(codec, &request, &mut shared).unwrap();
                    assert_eq!(commands, codec.encode(&request, &mut own).unwrap());
                    assert_eq!(shared, own, "{request:?} with {:?}", codec.prefix);
                }
            }
        }
    }
}
