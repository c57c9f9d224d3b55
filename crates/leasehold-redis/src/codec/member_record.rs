//! The member record: how it is written, and how it is read.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::member::{DataGeneration, Epoch, MemberId, MemberRecord, MemberRecordEdit, MemberSet, Observation, RunId};
use leasehold::store::is_printable;
use leasehold::{Error, ErrorKind};
use leasehold_quorum::Reply;

use super::command::{Codec, RIGHTS, call_record};
use super::failure::{invalid_response, is_wrong_type, refused};
use super::names::MEMBER_RECORD;
use crate::resp::{CommandWriter, Value};
use crate::scripts::{MEMBER_RECORD_OBSERVE, MEMBER_RECORD_WRITE};

/// The field of the epoch.
pub(super) const EPOCH: &str = "epoch";

/// The prefix of the field of an observation. The id of the member follows.
const SEEN: &str = "seen:";

pub(super) fn write(edit: &MemberRecordEdit, out: &mut CommandWriter<'_>) -> Result<(), Error> {
    let ids = lines(&edit.set.ids)?;
    check_all(&edit.seen)?;
    call_record(&MEMBER_RECORD_WRITE, out);
    out.arg(edit.expected.as_ref().map_or("", Epoch::as_str));
    out.arg(Epoch::of(edit.data_generation, edit.generation).as_str());
    out.arg(ids);
    out.arg(edit.set.max_ttl.as_millis().to_string());
    out.arg(edit.set.clock_tolerance.as_millis().to_string());
    out.number(edit.generation)
        .arg(edit.data_generation.to_string());
    match edit.age {
        Some(age) => out.arg(age.as_micros().to_string()),
        None => out.arg(""),
    };
    out.arg(edit.run.to_string());
    out.number(edit.durable.into());
    write_seen(&edit.seen, out);
    Ok(())
}

pub(super) fn write_observation(
    seen: &[(MemberId, DataGeneration)],
    out: &mut CommandWriter<'_>,
) -> Result<(), Error> {
    check_all(seen)?;
    if !seen.is_empty() {
        call_record(&MEMBER_RECORD_OBSERVE, out);
        write_seen(seen, out);
    }
    Ok(())
}

fn write_seen(seen: &[(MemberId, DataGeneration)], out: &mut CommandWriter<'_>) {
    for (id, data_generation) in seen {
        out.arg(id.as_str()).arg(data_generation.to_string());
    }
}

pub(super) fn read_written(codec: &Codec, answer: &Value) -> Result<Reply, Error> {
    Ok(Reply::Recorded(read_number(codec, answer)? == 1))
}

pub(super) fn read_observed(codec: &Codec, answer: &Value) -> Result<Reply, Error> {
    read_number(codec, answer).map(|_noted| Reply::Recorded(true))
}

fn read_number(codec: &Codec, answer: &Value) -> Result<i64, Error> {
    match answer {
        Value::Integer(number) => Ok(*number),
        Value::Error { code, message } if is_wrong_type(code, message) => Err(not_a_hash()),
        other => {
            codec.accepted(other)?;
            Err(invalid_response("the writing of the member record"))
        }
    }
}

fn lines(ids: &[MemberId]) -> Result<String, Error> {
    if ids.is_empty() {
        let rule = "a quorum without members cannot be recorded";
        return Err(Error::new(ErrorKind::InvalidInput, rule));
    }
    let ids: Result<Vec<_>, _> = ids.iter().map(checked).collect();
    Ok(ids?.join("\n"))
}

fn check_all(seen: &[(MemberId, DataGeneration)]) -> Result<(), Error> {
    seen.iter().try_for_each(|(id, _)| checked(id).map(drop))
}

/// Returns the id if it fits on one line of a list.
fn checked(id: &MemberId) -> Result<&str, Error> {
    let text = id.as_str();
    if !text.is_empty() && text.chars().all(is_printable) {
        return Ok(text);
    }
    let rule = format!("the member id {text:?}: at least one character, all of them printable");
    Err(Error::new(ErrorKind::InvalidInput, rule))
}

/// Asks for the record, for [`read()`].
pub(crate) fn ask(out: &mut CommandWriter<'_>) {
    out.command("HGETALL").arg(MEMBER_RECORD);
}

/// Reads the answer to HGETALL.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`], with the name of the field, if [`write()`] does not write it like that.
pub(crate) fn read(answer: &Value, user: &str) -> Result<Option<MemberRecord>, Error> {
    if let Value::Error { code, message } = answer {
        return Err(match is_wrong_type(code, message) {
            true => not_a_hash(),
            false => refused(code, message, user, RIGHTS),
        });
    }
    let pairs = answer
        .as_pairs()
        .ok_or_else(|| invalid_response("HGETALL"))?;
    if pairs.is_empty() {
        return Ok(None);
    }
    // A name that is not text is not one of ours. A value that is not text counts as missing.
    let texts = pairs
        .iter()
        .filter_map(|(name, value)| Some((name.as_text()?, value.as_text()?)));
    Fields(texts.collect()).member_record().map(Some)
}

fn not_a_hash() -> Error {
    corrupt("is not a hash")
}

fn corrupt(what: &str) -> Error {
    let text = format!(
        "the member record ({MEMBER_RECORD}) {what}: delete it with DEL {MEMBER_RECORD}; the member \
         then counts as one that lost its data, until it has a new record and has waited"
    );
    Error::new(ErrorKind::Corrupt, text)
}

/// The fields of a record by their names.
struct Fields<'a>(HashMap<&'a str, &'a str>);

impl Fields<'_> {
    fn member_record(&self) -> Result<MemberRecord, Error> {
        let member_record = MemberRecord {
            set: self.set()?,
            generation: self.number("generation")?,
            changed: WallTime::from_micros(self.number("changed")?),
            data_generation: self.parsed("data_generation", DataGeneration::parse)?,
            since: WallTime::from_micros(self.number("since")?),
            run: self.parsed("run", |text| (!text.is_empty()).then(|| RunId::new(text)))?,
            durable: self.parsed("durable", flag)?,
            observations: self.observations()?,
        };
        let epoch = member_record.epoch();
        self.parsed(EPOCH, |text| (text == epoch.as_str()).then_some(()))?;
        Ok(member_record)
    }

    fn set(&self) -> Result<MemberSet, Error> {
        let ids = |text: &str| {
            let ids = text.split('\n').map(MemberId::new).collect::<Vec<_>>();
            ids.iter().all(|id| checked(id).is_ok()).then_some(ids)
        };
        let span = |name| self.number(name).map(Duration::from_millis);
        let (max_ttl, clock_tolerance) = (span("max_ttl_ms")?, span("clock_tolerance_ms")?);
        Ok(MemberSet::new(
            self.parsed("ids", ids)?,
            max_ttl,
            clock_tolerance,
        ))
    }

    fn observations(&self) -> Result<BTreeMap<MemberId, Observation>, Error> {
        let seen = self.0.keys().filter_map(|name| {
            let id = name.strip_prefix(SEEN)?;
            Some((MemberId::new(id), name))
        });
        seen.map(|(id, name)| Ok((id, self.parsed(name, observation)?)))
            .collect()
    }

    fn number(&self, name: &str) -> Result<u64, Error> {
        self.parsed(name, |text| text.parse().ok())
    }

    fn parsed<T>(&self, name: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, Error> {
        let value = self.0.get(name);
        value.and_then(|text| parse(text)).ok_or_else(|| {
            let shown = match value {
                Some(text) => format!("makes no sense: {text:.80?}"),
                None => "is missing".to_owned(),
            };
            corrupt(&format!("is damaged, its field {name:?} {shown}"))
        })
    }
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

fn observation(text: &str) -> Option<Observation> {
    let mut parts = text.split(' ');
    let observation = Observation {
        data_generation: DataGeneration::parse(parts.next()?)?,
        at: WallTime::from_micros(parts.next()?.parse().ok()?),
        changed: flag(parts.next()?)?,
    };
    parts.next().is_none().then_some(observation)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: [(&str, &str); 10] = [
        (EPOCH, "0123456789abcdef.3"),
        ("ids", "a b\nc,d:6379"),
        ("max_ttl_ms", "60000"),
        ("clock_tolerance_ms", "250"),
        ("generation", "3"),
        ("changed", "1763637400000007"),
        ("data_generation", "0123456789abcdef"),
        ("since", "1763637400000008"),
        ("run", "abc"),
        ("durable", "1"),
    ];

    fn answer(fields: &[(&str, &str)]) -> Value {
        let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        let pairs = fields.iter().map(|(name, value)| (text(name), text(value)));
        Value::Map(pairs.collect())
    }

    fn with(name: &str, value: Option<&str>) -> Result<Option<MemberRecord>, Error> {
        let mut fields = WHOLE.to_vec();
        fields.retain(|(other, _)| *other != name);
        fields.extend(value.map(|value| (name, value)));
        read(&answer(&fields), "ann")
    }

    #[test]
    fn member_record_is_read() {
        let member_record = with("seen:c,d:6379", Some("fedcba9876543210 12 1"))
            .unwrap()
            .unwrap();
        let ids: Vec<_> = member_record.set.ids.iter().map(MemberId::as_str).collect();
        assert_eq!(ids, ["a b", "c,d:6379"]);
        assert_eq!(member_record.set.max_ttl, Duration::from_secs(60));
        assert_eq!(member_record.changed.as_micros(), 1_763_637_400_000_007);
        let seen = member_record.observations[&MemberId::new("c,d:6379")];
        assert_eq!((seen.at.as_micros(), seen.changed), (12, true));
        assert_eq!(read(&answer(&[]), "ann").unwrap(), None);
    }

    #[test]
    fn damaged_record_names_the_field() {
        let missing = WHOLE.iter().map(|(name, _)| (*name, None));
        let wrong = [
            (EPOCH, "0123456789abcdef.4"),
            ("ids", ""),
            ("ids", "a\n\nb"),
            ("max_ttl_ms", "-1"),
            ("clock_tolerance_ms", "1.5"),
            ("generation", "4"),
            ("changed", "99999999999999999999"),
            ("data_generation", "0123"),
            ("since", ""),
            ("run", ""),
            ("durable", "yes"),
            ("seen:b", "fedcba9876543210 12"),
            ("seen:b", "fedcba9876543210 12 1 1"),
            ("seen:b", "fedcba 12 1"),
        ];
        let wrong = wrong.map(|(name, value)| (name, Some(value)));
        for (name, value) in missing.chain(wrong) {
            let error = with(name, value).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{name} {value:?}");
            let text = error.to_string();
            let named = if name == "generation" && value.is_some() {
                EPOCH
            } else {
                name
            };
            assert!(text.contains(&format!("{named:?}")), "{text}");
            assert!(text.contains("DEL leasehold:member_record"), "{text}");
        }
    }

    #[test]
    fn ids_that_would_be_confused_are_refused() {
        for id in ["", "a\nb", "a\0"] {
            let error = lines(&[MemberId::new("a"), MemberId::new(id)]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(&format!("{id:?}")), "{error}");
        }
        assert!(lines(&[]).is_err());
    }
}
