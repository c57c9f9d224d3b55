//! The state in the record of a request: pure, and the same in every version that can read it.
#![deny(clippy::disallowed_types)]

use std::sync::Arc;

use crate::store::RecordWrite;
use crate::types::{Error, ErrorKind, Fence};

/// The hash of a payload.
pub(crate) type PayloadHash = [u8; 32];

/// The progress of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OnceState {
    /// As if the request had never been made: an attempt ended without a result to keep.
    Vacant,
    /// An attempt has begun. The lock tells whether it is still running.
    Started(PayloadHash),
    /// The request is done.
    Done {
        payload: PayloadHash,
        /// The fence of the attempt that committed the result.
        fence: Fence,
        result: Arc<[u8]>,
    },
}

impl OnceState {
    /// The maximum size of a result, in bytes.
    pub(crate) const RESULT_MAX: usize = RecordWrite::BYTES_MAX - Self::OVERHEAD;

    /// How much longer a record is than the result in it.
    const OVERHEAD: usize = HEADER + 32 + 8;

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(VERSION);
        match self {
            Self::Vacant => bytes.push(VACANT),
            Self::Started(payload) => {
                bytes.push(STARTED);
                bytes.extend(payload);
            }
            Self::Done {
                payload,
                fence,
                result,
            } => {
                bytes.push(DONE);
                bytes.extend(payload);
                bytes.extend(fence.get().to_le_bytes());
                bytes.extend(&**result);
            }
        }
        bytes
    }

    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`] for anything that [`encode`](Self::encode) does not write,
    /// [`ErrorKind::Unsupported`] for a later version.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(foreign)?;
        let [version, kind, rest @ ..] = rest else {
            return Err(foreign());
        };
        if *version != VERSION {
            let text = format!("the record has format {version}, of a later version");
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        match (*kind, rest.split_first_chunk()) {
            (VACANT, _) if rest.is_empty() => Ok(Self::Vacant),
            (STARTED, Some((payload, []))) => Ok(Self::Started(*payload)),
            (DONE, Some((payload, rest))) => {
                let (fence, result) = rest.split_first_chunk().ok_or_else(foreign)?;
                Ok(Self::Done {
                    payload: *payload,
                    fence: Fence::new(u64::from_le_bytes(*fence)).ok_or_else(foreign)?,
                    result: result.into(),
                })
            }
            _ => Err(foreign()),
        }
    }
}

fn foreign() -> Error {
    let text = "the record is damaged, or is not that of a request: another name is needed for it";
    Error::new(ErrorKind::Corrupt, text)
}

const MAGIC: &[u8] = b"once";
const VERSION: u8 = 1;
const HEADER: usize = MAGIC.len() + 2;
const VACANT: u8 = 0;
const STARTED: u8 = 1;
const DONE: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn done(result: &[u8]) -> OnceState {
        OnceState::Done {
            payload: [7; 32],
            fence: Fence::MAX,
            result: result.into(),
        }
    }

    #[test]
    fn what_was_encoded_is_decoded() {
        let states = [
            OnceState::Vacant,
            OnceState::Started([9; 32]),
            done(b""),
            done(b"\0result\xff"),
        ];
        for state in states {
            assert_eq!(OnceState::decode(&state.encode()).unwrap(), state);
        }
        assert_eq!(done(b"").encode().len(), OnceState::OVERHEAD);
    }

    #[test]
    fn what_is_none_of_it_is_refused() {
        let started = OnceState::Started([9; 32]).encode();
        let cut = (0..started.len()).map(|length| started[..length].to_vec());
        let cut_done =
            (0..OnceState::OVERHEAD).map(|length| done(b"x").encode()[..length].to_vec());
        let longer = [started.clone(), vec![0]].concat();
        let vacant = [OnceState::Vacant.encode(), vec![0]].concat();
        let kind = [b"once".to_vec(), vec![VERSION, 3]].concat();
        let mut no_fence = done(b"x").encode();
        no_fence[HEADER + 32..HEADER + 40].fill(0);
        let others = [longer, vacant, kind, no_fence, b"10.0.0.7:8080".to_vec()];
        for wrong in cut.chain(cut_done).chain(others) {
            let error = OnceState::decode(&wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{wrong:?}");
        }
        let newer = [b"once".to_vec(), vec![2, 0]].concat();
        let error = OnceState::decode(&newer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}
