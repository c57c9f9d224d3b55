//! The card: how it is written at the server, and read again.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::{
    Card, CardEdit, Error, ErrorKind, Life, Mark, MemberId, MemberSet, RunId, Sighting,
};

use crate::attempt::garbled;
use crate::connection::{Answer, Link, Refusal, Unanswered};
use crate::scripts::{CARD_WRITE, RIGHTS, WITNESS};
use crate::wire::CARD;

/// The field of the card's mark.
pub(crate) const MARK: &str = "mark";

/// In front of a member's id: the field of what the card says of that member.
const SEEN: &str = "seen:";

/// Writes on the card; `false` if another mark stands than the edit expects.
pub(crate) async fn write(link: &Link, edit: &CardEdit) -> Result<bool, Error> {
    let micros = |age: Duration| age.as_micros().to_string();
    let mut arguments = vec![
        edit.expected.as_ref().map_or("", Mark::as_str).to_owned(),
        Mark::of(edit.life, edit.generation).as_str().to_owned(),
        lines(&edit.set.ids)?,
        edit.set.max_ttl.as_millis().to_string(),
        edit.set.clock_tolerance.as_millis().to_string(),
        edit.generation.to_string(),
        edit.life.to_string(),
        edit.age.map(micros).unwrap_or_default(),
        edit.run.to_string(),
        u8::from(edit.durable).to_string(),
    ];
    arguments.extend(pairs(&edit.seen)?);
    let call = CARD_WRITE.call(&[CARD], &arguments);
    // Like an attempt: a first card that arrived late could speak for data that was lost meanwhile.
    let unanswered = Unanswered::on(link);
    let answers = link.run(&CARD_WRITE, vec![call]).await?;
    unanswered.answered();
    match answers.as_slice() {
        [Answer::Integer(written)] => Ok(*written == 1),
        [Answer::Refused(refusal)] => Err(refused(refusal, link)),
        _ => Err(garbled("the writing of the card")),
    }
}

/// Notes the lives of other members on the card.
pub(crate) async fn witness(link: &Link, seen: &[(MemberId, Life)]) -> Result<(), Error> {
    if seen.is_empty() {
        return Ok(());
    }
    let call = WITNESS.call(&[CARD], &pairs(seen)?);
    let answers = link.run(&WITNESS, vec![call]).await?;
    match answers.as_slice() {
        [Answer::Integer(_)] => Ok(()),
        [Answer::Refused(refusal)] => Err(refused(refusal, link)),
        _ => Err(garbled("the lives of other members")),
    }
}

fn refused(refusal: &Refusal, link: &Link) -> Error {
    if refusal.is_wrong_type() {
        return not_a_hash();
    }
    refusal.to_error(link.user(), RIGHTS).with_unknown_effect()
}

fn lines(ids: &[MemberId]) -> Result<String, Error> {
    if ids.is_empty() {
        let rule = "a set without members cannot be written on a card";
        return Err(Error::new(ErrorKind::InvalidInput, rule));
    }
    let ids: Result<Vec<_>, _> = ids.iter().map(checked).collect();
    Ok(ids?.join("\n"))
}

fn pairs(seen: &[(MemberId, Life)]) -> Result<Vec<String>, Error> {
    let mut arguments = Vec::with_capacity(2 * seen.len());
    for (id, life) in seen {
        arguments.extend([checked(id)?.to_owned(), life.to_string()]);
    }
    Ok(arguments)
}

/// The id, where it can be one line among others.
fn checked(id: &MemberId) -> Result<&str, Error> {
    let text = id.as_str();
    if !text.is_empty() && !text.chars().any(char::is_control) {
        return Ok(text);
    }
    let rule = format!("the member id {text:?}: at least one character, and no control characters");
    Err(Error::new(ErrorKind::InvalidInput, rule))
}

/// Reads the answer to HGETALL.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`], naming the field, if it is not what [`write()`] wrote.
pub(crate) fn read(answer: &Answer, user: &str) -> Result<Option<Card>, Error> {
    let items = match answer {
        Answer::List(items) if items.is_empty() => return Ok(None),
        Answer::List(items) => items,
        Answer::Refused(refusal) if refusal.is_wrong_type() => return Err(not_a_hash()),
        Answer::Refused(refusal) => return Err(refusal.to_error(user, RIGHTS)),
        _ => return Err(garbled("HGETALL")),
    };
    let mut fields = Fields(HashMap::new());
    for pair in items.chunks_exact(2) {
        let (name, value) = (pair[0].as_text(), pair[1].as_text());
        // A name that is no text is none of ours; a value that is none shows as missing.
        if let (Some(name), Some(value)) = (name, value) {
            fields.0.insert(name, value);
        }
    }
    fields.card().map(Some)
}

fn not_a_hash() -> Error {
    corrupt("is not a hash")
}

fn corrupt(what: &str) -> Error {
    let text = format!(
        "the member's card (the record {CARD}) {what}: delete it with DEL {CARD}; the member then \
         counts as one that lost its data, until it has a new card and has waited"
    );
    Error::new(ErrorKind::Corrupt, text)
}

/// The fields of a card by their names.
struct Fields<'a>(HashMap<&'a str, &'a str>);

impl Fields<'_> {
    fn card(&self) -> Result<Card, Error> {
        let card = Card {
            set: self.set()?,
            generation: self.number("generation")?,
            changed: WallTime::from_micros(self.number("changed")?),
            life: self.parsed("life", Life::parse)?,
            since: WallTime::from_micros(self.number("since")?),
            run: self.parsed("run", |text| (!text.is_empty()).then(|| RunId::new(text)))?,
            durable: self.parsed("durable", flag)?,
            sightings: self.sightings()?,
        };
        let mark = card.mark();
        self.parsed(MARK, |text| (text == mark.as_str()).then_some(()))?;
        Ok(card)
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

    fn sightings(&self) -> Result<BTreeMap<MemberId, Sighting>, Error> {
        let seen = self.0.keys().filter_map(|name| {
            let id = name.strip_prefix(SEEN)?;
            Some((MemberId::new(id), name))
        });
        seen.map(|(id, name)| Ok((id, self.parsed(name, sighting)?)))
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

fn sighting(text: &str) -> Option<Sighting> {
    let mut parts = text.split(' ');
    let sighting = Sighting {
        life: Life::parse(parts.next()?)?,
        at: WallTime::from_micros(parts.next()?.parse().ok()?),
        changed: flag(parts.next()?)?,
    };
    parts.next().is_none().then_some(sighting)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: [(&str, &str); 10] = [
        (MARK, "0123456789abcdef.3"),
        ("ids", "a b\nc,d:6379"),
        ("max_ttl_ms", "60000"),
        ("clock_tolerance_ms", "250"),
        ("generation", "3"),
        ("changed", "1763637400000007"),
        ("life", "0123456789abcdef"),
        ("since", "1763637400000008"),
        ("run", "abc"),
        ("durable", "1"),
    ];

    fn answer(fields: &[(&str, &str)]) -> Answer {
        let texts = fields.iter().flat_map(|(name, value)| [name, value]);
        Answer::List(
            texts
                .map(|text| Answer::Text(text.as_bytes().to_vec()))
                .collect(),
        )
    }

    fn with(name: &str, value: Option<&str>) -> Result<Option<Card>, Error> {
        let mut fields = WHOLE.to_vec();
        fields.retain(|(other, _)| *other != name);
        fields.extend(value.map(|value| (name, value)));
        read(&answer(&fields), "ann")
    }

    #[test]
    fn a_card_is_read() {
        let card = with("seen:c,d:6379", Some("fedcba9876543210 12 1"))
            .unwrap()
            .unwrap();
        let ids: Vec<_> = card.set.ids.iter().map(MemberId::as_str).collect();
        assert_eq!(ids, ["a b", "c,d:6379"]);
        assert_eq!(card.set.max_ttl, Duration::from_secs(60));
        assert_eq!(card.changed.as_micros(), 1_763_637_400_000_007);
        let seen = card.sightings[&MemberId::new("c,d:6379")];
        assert_eq!((seen.at.as_micros(), seen.changed), (12, true));
        assert_eq!(read(&answer(&[]), "ann").unwrap(), None);
    }

    #[test]
    fn a_damaged_card_is_corrupt_and_names_the_field() {
        let missing = WHOLE.iter().map(|(name, _)| (*name, None));
        let wrong = [
            (MARK, "0123456789abcdef.4"),
            ("ids", ""),
            ("ids", "a\n\nb"),
            ("max_ttl_ms", "-1"),
            ("clock_tolerance_ms", "1.5"),
            ("generation", "4"),
            ("changed", "99999999999999999999"),
            ("life", "0123"),
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
                MARK
            } else {
                name
            };
            assert!(text.contains(&format!("{named:?}")), "{text}");
            assert!(text.contains("DEL leasehold:card"), "{text}");
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
