//! The requests that take and free a lock for which no client waits, and their usual replies.
//!
//! Nearly all requests of an uncontended client are of these two kinds, and nearly all their replies are the same
//! bytes. They are recognized without building values. Any other reply is read as that of every request.

use leasehold::Fence;
use leasehold_quorum::{Reply, Request};

/// What has to be known of such a request to read its replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsualRequest {
    /// [`Request::TryAcquire`], which proposes this fence.
    TryAcquire { proposal: u64, expire: bool },
    /// [`Request::Free`].
    Free,
}

impl UsualRequest {
    pub(crate) fn of(request: &Request) -> Option<Self> {
        match request {
            Request::TryAcquire {
                proposal, expire, ..
            } => Some(Self::TryAcquire {
                proposal: *proposal,
                expire: *expire,
            }),
            Request::Free { .. } => Some(Self::Free),
            _ => None,
        }
    }

    /// Reads the usual replies, if `bytes` begin with them. Also returns their length.
    #[inline]
    pub(crate) fn read(self, bytes: &[u8]) -> Option<(Reply, usize)> {
        let (usual, reply): (&[u8], _) = match self {
            Self::TryAcquire { proposal, expire } => {
                let fence = Fence::new(proposal)?;
                let usual: &[u8] = match expire {
                    true => b"_\r\n:1\r\n:1\r\n",
                    false => b"_\r\n:1\r\n",
                };
                (usual, Reply::Granted { fence, slot: None })
            }
            Self::Free => (
                b":1\r\n",
                Reply::Released {
                    freed: true,
                    successor: None,
                },
            ),
        };
        bytes.starts_with(usual).then_some((reply, usual.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Codec, Decoded};
    use crate::resp::Parser;

    /// The reply to a request as it is read in the usual and in the general way.
    fn replies(usual: UsualRequest, bytes: &[u8]) -> (Option<String>, String) {
        let codec = Codec {
            prefix: String::new(),
            user: "ann".into(),
            client: "0123456789abcdef".parse().unwrap(),
        };
        let mut parser = Parser::new();
        parser.room()[..bytes.len()].copy_from_slice(bytes);
        parser.filled(bytes.len());
        let values = std::iter::from_fn(|| parser.next_value().unwrap());
        let values: Vec<_> = values.take(usual.answers()).collect();
        let general = match codec.decode_usual(usual, &values) {
            Decoded::Reply(reply) => format!("{reply:?}"),
            Decoded::NoScript(script) => script.name.to_owned(),
        };
        let read = usual.read(bytes);
        let read = read.map(|(reply, length)| {
            assert!(parser.next_value().unwrap().is_none() == (length == bytes.len()));
            format!("{reply:?}")
        });
        (read, general)
    }

    #[test]
    fn usual_replies_mean_the_same_in_both_ways() {
        let attempt = |expire| UsualRequest::TryAcquire {
            proposal: 7,
            expire,
        };
        for (usual, bytes, is_usual) in [
            (attempt(false), "_\r\n:1\r\n", true),
            (attempt(false), "_\r\n:0\r\n", false),
            (attempt(false), "$1\r\nx\r\n:1\r\n", false),
            (attempt(false), "_\r\n-OOM no memory\r\n", false),
            (attempt(true), "_\r\n:1\r\n:1\r\n", true),
            (attempt(true), "_\r\n:1\r\n:0\r\n", false),
            (UsualRequest::Free, ":1\r\n", true),
            (UsualRequest::Free, ":0\r\n", false),
            (UsualRequest::Free, "-NOSCRIPT no script\r\n", false),
        ] {
            let (read, general) = replies(usual, bytes.as_bytes());
            assert_eq!(read, is_usual.then_some(general), "{usual:?}, {bytes:?}");
        }
    }

    #[test]
    fn usual_replies_are_read_when_they_are_whole() {
        let usual = UsualRequest::TryAcquire {
            proposal: 7,
            expire: true,
        };
        let bytes = b"_\r\n:1\r\n:1\r\n:1\r\n";
        for length in 0..11 {
            assert!(usual.read(&bytes[..length]).is_none(), "{length}");
        }
        assert!(matches!(usual.read(bytes), Some((_, 11))));
    }
}
