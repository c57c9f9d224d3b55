//! How SQL writes requests and their answers: pure.

use std::time::Duration;

use leasehold::clock::BootInstant;
use leasehold::look::Owner;
use leasehold::store::{Busy, Held, LockRequest, Permits, ReleaseReply, RenewReply, Term};
use leasehold::{Error, ErrorKind, Fence, LostReason, Mode};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use crate::connection::failure;

/// The answer to an attempt.
pub(crate) enum Answer {
    Granted(Fence),
    /// The lock is not free. The ticket is that of the place in the queue, if the request has one.
    Busy(Busy, Option<i64>),
}

/// What each connection prepares, with the types of the parameters.
pub(crate) const STATEMENTS: [(&str, &[Type]); 4] = [
    (
        "select leasehold.acquire($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        &[
            Type::TEXT,
            Type::TEXT,
            Type::TEXT,
            Type::INT4,
            Type::INT8,
            Type::INT8,
            Type::BOOL,
            Type::BOOL,
            Type::INT8,
        ],
    ),
    (
        "select leasehold.renew($1, $2, $3, $4)",
        &[
            Type::TEXT_ARRAY,
            Type::TEXT_ARRAY,
            Type::INT4_ARRAY,
            Type::INT8_ARRAY,
        ],
    ),
    (
        "select leasehold.release($1, $2, $3, $4)",
        &[Type::TEXT, Type::TEXT, Type::TEXT, Type::BOOL],
    ),
    (
        "select leasehold.keep_places($1, $2)",
        &[Type::TEXT_ARRAY, Type::TEXT_ARRAY],
    ),
];

/// The statements by their places in [`STATEMENTS`].
pub(crate) const ACQUIRE: usize = 0;
pub(crate) const RENEW: usize = 1;
pub(crate) const RELEASE: usize = 2;
pub(crate) const KEEP_PLACES: usize = 3;

/// Reads what `leasehold.acquire` returns.
pub(crate) fn answer(text: &str, request: &LockRequest) -> Result<Answer, Error> {
    let mut words = text.split(' ');
    let (kind, first) = (words.next(), words.next().unwrap_or_default());
    let number = |word: Option<&str>| word?.parse::<u64>().ok();
    match (kind, number(Some(first))) {
        (Some("granted"), Some(fence)) => {
            let fence = Fence::new(fence).ok_or_else(|| unexpected(text).with_unknown_effect())?;
            Ok(Answer::Granted(fence))
        }
        (Some("permits"), Some(in_use)) => {
            let wanted = request.mode.permits().map_or(0, Permits::get);
            Err(Error::permits_differ(in_use, wanted))
        }
        (Some("busy"), _) => {
            let mut busy = Busy::by(first.parse().ok());
            busy.remaining = number(words.next()).map(Duration::from_micros);
            busy.position = number(words.next());
            let ticket = words.next().and_then(|word| word.parse().ok());
            Ok(Answer::Busy(busy, ticket))
        }
        _ => Err(unexpected(text).with_unknown_effect()),
    }
}

/// Reads what `leasehold.release` returns: whether the owner held the lock, and the grants to waiters of this client.
pub(crate) fn released(text: &str) -> Result<(ReleaseReply, Vec<(Owner, Fence)>), Error> {
    let mut words = text.split(' ');
    let reply = match words.next() {
        Some("released") => ReleaseReply::Released,
        Some("lost") => ReleaseReply::WasLost,
        _ => return Err(unexpected(text).with_unknown_effect()),
    };
    let mut grants = Vec::new();
    while let Some(owner) = words.next() {
        let fence = words.next().and_then(|word| Fence::new(word.parse().ok()?));
        let grant = owner.parse().ok().zip(fence);
        grants.push(grant.ok_or_else(|| unexpected(text).with_unknown_effect())?);
    }
    Ok((reply, grants))
}

/// Reads what `leasehold.keep_places` returns: the indices of those that should ask, from 0, and when; `None` if their place
/// is gone.
pub(crate) fn asks(text: &str) -> Result<Vec<(usize, Option<Duration>)>, Error> {
    let mut words = text.split(' ').skip(1);
    let mut asks = Vec::new();
    while let Some(word) = words.next() {
        let number = word.parse::<usize>().ok().and_then(|it| it.checked_sub(1));
        let rest = words.next().and_then(|word| word.parse::<i64>().ok());
        let ask = number.zip(rest.map(|rest| u64::try_from(rest).ok().map(Duration::from_micros)));
        asks.push(ask.ok_or_else(|| unexpected(text))?);
    }
    Ok(asks)
}

pub(crate) fn renewal(held: &Held, answer: i32, since: BootInstant) -> RenewReply {
    match answer {
        0 => RenewReply::Renewed(Term::new(since, held.request.ttl)),
        1 => RenewReply::Lost(LostReason::Taken),
        2 => RenewReply::Lost(LostReason::Gone),
        3 => RenewReply::Lost(LostReason::Broken),
        4 => RenewReply::Unknown(failure::row_in_use()),
        _ => {
            RenewReply::Unknown(unexpected("an unknown answer to a renewal").with_unknown_effect())
        }
    }
}

pub(crate) fn unexpected(what: &str) -> Error {
    let text =
        format!("the server sent {what}; are the functions of the schema those of this version?");
    Error::new(ErrorKind::InvalidResponse, text)
}

/// Returns a column of an answer.
pub(crate) fn column<'a, T: FromSql<'a>>(row: &'a Row, number: usize) -> Result<T, Error> {
    row.try_get(number).map_err(|error| {
        let error =
            unexpected(&format!("an answer with another column {number}")).with_source(error);
        error.with_unknown_effect()
    })
}

/// How the tables write a mode.
pub(crate) fn mode_number(mode: Mode) -> i32 {
    match mode {
        Mode::Exclusive => 0,
        Mode::Shared => -1,
        Mode::Permit(permits) => i32::try_from(permits.get()).unwrap_or(i32::MAX),
    }
}

/// The mode that a number stands for.
pub(crate) fn mode_of(number: i32) -> Mode {
    match u32::try_from(number).ok().map(Permits::new) {
        Some(Ok(permits)) => Mode::Permit(permits),
        _ if number < 0 => Mode::Shared,
        _ => Mode::Exclusive,
    }
}

/// A span as SQL writes it.
pub(crate) fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// A span that SQL wrote.
pub(crate) fn span(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use leasehold::env::Env;
    use leasehold::{Effect, Key};

    use std::sync::Arc;

    use super::*;

    #[test]
    fn answers_are_read_or_refused() {
        let env = Env::default();
        let info = Arc::new(env.this_process(None));
        let owner = Owner::at(info.id, env.clock.wall(), &*env.entropy);
        let request = LockRequest::new(
            Key::new("x").unwrap(),
            owner,
            Duration::from_secs(1),
            env.clock.wall(),
            info,
        );
        let read = |text: &str| answer(text, &request);
        assert!(matches!(read("granted 7"), Ok(Answer::Granted(fence)) if fence.get() == 7));
        let Ok(Answer::Busy(busy, ticket)) = read(&format!("busy {owner} 1500 3 77")) else {
            panic!("not busy")
        };
        assert_eq!((busy.holder, busy.position), (Some(owner), Some(3)));
        assert_eq!(ticket, Some(77));
        assert_eq!(busy.remaining, Some(Duration::from_micros(1500)));
        let Ok(Answer::Busy(busy, None)) = read("busy - - - -") else {
            panic!("not busy")
        };
        assert_eq!(busy, Busy::default());
        let differs = read("permits 3").err().map(|error| error.kind());
        assert_eq!(differs, Some(ErrorKind::PermitsDiffer));
        for text in ["", "granted", "granted 0", "granted x", "permits", "7"] {
            let error = read(text).err().unwrap();
            assert_eq!(
                (error.kind(), error.effect()),
                (ErrorKind::InvalidResponse, Effect::Unknown),
                "{text}"
            );
        }
    }

    #[test]
    fn releases_name_the_next_holders() {
        let owner: Owner = "0123456789abcdef.0123456789abcdef0123456789abcdef"
            .parse()
            .unwrap();
        let fence = Fence::new(7).unwrap();
        for (text, reply, grants) in [
            ("released", ReleaseReply::Released, vec![]),
            ("lost", ReleaseReply::WasLost, vec![]),
            (
                &format!("released {owner} 7 {owner} 7"),
                ReleaseReply::Released,
                vec![(owner, fence); 2],
            ),
        ] {
            assert_eq!(released(text).unwrap(), (reply, grants), "{text}");
        }
        for text in ["", "0", "released x 7", &format!("lost {owner} 0")] {
            let error = released(text).unwrap_err();
            assert_eq!(error.effect(), Effect::Unknown, "{text}");
        }
    }

    #[test]
    fn waiters_that_should_ask_are_named() {
        assert_eq!(asks("").unwrap(), []);
        let both = vec![(0, None), (6, Some(Duration::from_micros(1500)))];
        assert_eq!(asks(" 1 -1 7 1500").unwrap(), both);
        for text in [" 0 0", " 1", " x 1", " 1 x"] {
            let error = asks(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidResponse, "{text}");
        }
    }

    #[test]
    fn modes_survive_their_numbers() {
        let permits = |count| Mode::Permit(Permits::new(count).unwrap());
        for mode in [Mode::Exclusive, Mode::Shared, permits(1), permits(128)] {
            assert_eq!(mode_of(mode_number(mode)), mode);
        }
    }
}
