//! The requests that locks need, and what the server answers.

use super::code::Code;
use super::jute::{Decoder, Encoder, Malformed};

/// The clients that may use a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everyone.
    Open,
    /// Those who log in as its creator did.
    Creator,
}

/// How long a new node lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    Persistent,
    /// As long as the session. The server appends a number, which counts up in the parent.
    EphemeralSequential,
    /// Until its last child is gone.
    Container,
}

/// What a request asks for. Paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op<'a> {
    Create(&'a str, &'a [u8], Lifetime, Access),
    Delete(&'a str, i32),
    Exists(&'a str),
    /// Also whether the server shall notify of the next change.
    GetData(&'a str, bool),
    SetData(&'a str, &'a [u8], i32),
    GetChildren(&'a str, bool),
    Check(&'a str),
    /// Brings the server up to date with the leader.
    Sync(&'a str),
    /// All or none.
    Multi(Vec<Self>),
    CloseSession,
}

/// Any version of a node.
pub(crate) const ANY: i32 = -1;

impl Op<'_> {
    pub(crate) fn code(&self) -> i32 {
        match self {
            Self::Create(_, _, Lifetime::Container, _) => 19,
            Self::Create(..) => 15,
            Self::Delete(..) => 2,
            Self::Exists(_) => 3,
            Self::GetData(..) => 4,
            Self::SetData(..) => 5,
            Self::Sync(_) => 9,
            Self::GetChildren(..) => 12,
            Self::Check(_) => 13,
            Self::Multi(_) => 14,
            Self::CloseSession => -11,
        }
    }

    /// Whether a majority of the servers commits it, or only the leader takes part.
    pub(crate) fn reach(&self) -> Reach {
        match self {
            Self::Create(..) | Self::Delete(..) | Self::SetData(..) | Self::Multi(_) => {
                Reach::Quorum
            }
            Self::Sync(_) => Reach::Leader,
            _ => Reach::Server,
        }
    }

    pub(crate) fn encode(&self, out: &mut Encoder) {
        match self {
            Self::Create(path, data, lifetime, access) => {
                out.text(path).bytes(data);
                let (scheme, id) = match access {
                    Access::Open => ("world", "anyone"),
                    Access::Creator => ("auth", ""),
                };
                out.int(1).int(ALL).text(scheme).text(id);
                out.int(match lifetime {
                    Lifetime::Persistent => 0,
                    Lifetime::EphemeralSequential => 3,
                    Lifetime::Container => 4,
                });
            }
            Self::Delete(path, version) => {
                out.text(path).int(*version);
            }
            Self::Check(path) => {
                out.text(path).int(ANY);
            }
            Self::Exists(path) => {
                out.text(path).bool(false);
            }
            Self::GetData(path, watch) | Self::GetChildren(path, watch) => {
                out.text(path).bool(*watch);
            }
            Self::SetData(path, data, version) => {
                out.text(path).bytes(data).int(*version);
            }
            Self::Sync(path) => {
                out.text(path);
            }
            Self::Multi(parts) => {
                for part in parts {
                    out.int(part.code()).bool(false).int(-1);
                    part.encode(out);
                }
                out.int(-1).bool(true).int(-1);
            }
            Self::CloseSession => {}
        }
    }
}

/// All rights: read, write, create, delete, and change rights.
const ALL: i32 = 31;

/// Which servers take part in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The connected one.
    Server,
    /// What the connected one takes for the leader.
    Leader,
    /// The leader and a majority.
    Quorum,
}

/// The part of a node's state that locks need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    /// The number of the transaction that wrote the node last.
    pub(crate) written_by: i64,
    /// The time of the last change in milliseconds since 1970, by the clock of the leader.
    pub(crate) changed_ms: i64,
    pub(crate) version: i32,
}

impl Stat {
    pub(crate) fn read(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let (_created, written_by, _created_ms) = (from.long()?, from.long()?, from.long()?);
        let (changed_ms, version) = (from.long()?, from.int()?);
        let (_children_version, _acl_version, _owner) = (from.int()?, from.int()?, from.long()?);
        let (_length, _children, _children_changed) = (from.int()?, from.int()?, from.long()?);
        Ok(Self {
            written_by,
            changed_ms,
            version,
        })
    }
}

/// Reads the path of a new node.
pub(crate) fn created(from: &mut Decoder<'_>) -> Result<(String, Stat), Malformed> {
    Ok((from.text()?.to_owned(), Stat::read(from)?))
}

pub(crate) fn data(from: &mut Decoder<'_>) -> Result<(Vec<u8>, Stat), Malformed> {
    Ok((from.bytes()?.to_vec(), Stat::read(from)?))
}

pub(crate) fn children(from: &mut Decoder<'_>) -> Result<Vec<String>, Malformed> {
    let names = from.list(|item| item.text().map(ToOwned::to_owned))?;
    Stat::read(from)?;
    Ok(names)
}

pub(crate) fn stat(from: &mut Decoder<'_>) -> Result<Stat, Malformed> {
    Stat::read(from)
}

pub(crate) fn nothing(_: &mut Decoder<'_>) -> Result<(), Malformed> {
    Ok(())
}

/// What a transaction did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    /// The path of the last node that it created.
    pub(crate) created: Option<String>,
    /// The state of the last node that it wrote.
    pub(crate) written: Option<Stat>,
}

/// The effects of a transaction, or the number of the first part that failed, and why.
pub(crate) type Outcome = Result<Effects, (usize, Code)>;

/// Reads the answer to a creation as that to a transaction of one part.
pub(crate) fn creation(from: &mut Decoder<'_>) -> Result<Outcome, Malformed> {
    let (path, stat) = created(from)?;
    Ok(Ok(Effects {
        created: Some(path),
        written: Some(stat),
    }))
}

/// Reads the answers to a transaction.
pub(crate) fn transaction(from: &mut Decoder<'_>) -> Result<Outcome, Malformed> {
    let (mut effects, mut failed) = (Effects::default(), None);
    for number in 0.. {
        let (code, is_last, _) = (from.int()?, from.bool()?, from.int()?);
        if is_last {
            break;
        }
        match code {
            -1 => match from.int()? {
                0 | ROLLED_BACK => {}
                error => failed = failed.or(Some((number, Code(error)))),
            },
            // A node that was created within a transaction comes without its state.
            1 => effects.created = Some(from.text()?.to_owned()),
            15 | 19 => effects.created = Some(created(from)?.0),
            5 => effects.written = Some(Stat::read(from)?),
            2 | 13 => {}
            _ => return Err(Malformed),
        }
    }
    Ok(failed.map_or(Ok(effects), Err))
}

/// The answer to a part behind the failed one.
const ROLLED_BACK: i32 = -2;

#[cfg(test)]
mod tests {
    use super::*;

    fn body(write: impl FnOnce(&mut Encoder)) -> Vec<u8> {
        let mut out = Encoder::default();
        write(&mut out);
        out.framed().split_off(4)
    }

    #[test]
    fn first_failed_part_is_named() {
        let failed = body(|out| {
            for error in [0, -103, -2] {
                out.int(-1).bool(false).int(error).int(error);
            }
            out.int(-1).bool(true).int(-1);
        });
        let answer = transaction(&mut Decoder::new(&failed));
        assert_eq!(answer, Ok(Err((1, Code::BAD_VERSION))));
        let done = body(|out| {
            out.int(13).bool(false).int(0).int(-1).bool(true).int(-1);
        });
        assert_eq!(
            transaction(&mut Decoder::new(&done)),
            Ok(Ok(Effects::default()))
        );
        assert_eq!(transaction(&mut Decoder::new(&done[..9])), Err(Malformed));
        let unknown = body(|out| {
            out.int(99).bool(false).int(0);
        });
        assert_eq!(transaction(&mut Decoder::new(&unknown)), Err(Malformed));
    }

    #[test]
    fn any_bytes_are_read_without_harm() {
        use leasehold::env::{Entropy as _, SystemEntropy};
        for _ in 0..20_000 {
            let length = SystemEntropy.next_u64() % 64;
            // Small numbers, so that lengths and codes are often plausible.
            let bytes: Vec<u8> = (0..length)
                .map(|_| (SystemEntropy.next_u64() % 6) as u8)
                .collect();
            let _ = created(&mut Decoder::new(&bytes));
            let _ = data(&mut Decoder::new(&bytes));
            let _ = children(&mut Decoder::new(&bytes));
            let _ = transaction(&mut Decoder::new(&bytes));
        }
    }

    #[test]
    fn only_transactions_reach_a_quorum() {
        assert_eq!(Op::Check("/a").reach(), Reach::Server);
        assert_eq!(Op::Multi(vec![Op::Check("/a")]).reach(), Reach::Quorum);
        assert_eq!(Op::Sync("/a").reach(), Reach::Leader);
        assert_eq!(Op::GetChildren("/a", true).reach(), Reach::Server);
    }
}
