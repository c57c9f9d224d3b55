//! The text form of a [`Handle`]: `lh1_` and hexadecimal digits, safe in URLs, shells and files.
//!
//! The digits encode a record: fixed fields, the key, the locations of the store, each after a zero byte, and
//! a checksum over all of them. A handle without locations is valid.

use std::fmt::Write as _;
use std::str::FromStr;
use std::time::Duration;

use super::Handle;
use crate::env::clock::{BootId, BootInstant, fnv1a};
use crate::types::{Error, ErrorKind, Fence, Key, Mode, Owner, Permits};

impl Handle {
    /// Returns the text of the handle, for another process. The text is enough to release the lock: keep it
    /// out of logs and out of command arguments.
    pub fn reveal(&self) -> String {
        let (client, nonce) = self.owner.to_bits();
        let mut bytes = Vec::new();
        bytes.push(match self.mode {
            Mode::Exclusive => EXCLUSIVE,
            Mode::Shared => SHARED,
            // 1 to 128.
            Mode::Permit(permits) => u8::try_from(permits.get()).unwrap_or(u8::MAX),
        });
        bytes.extend(client.to_be_bytes());
        bytes.extend(nonce.to_be_bytes());
        let hold = self.hold_deadline.map_or(NO_END, BootInstant::as_nanos);
        for number in [
            nanos(self.ttl),
            nanos(self.delay),
            self.fence.get(),
            self.deadline.as_nanos(),
            hold,
            self.boot.to_bits(),
        ] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(self.key.as_str().as_bytes());
        let mut room = LOCATIONS_MAX;
        for location in &self.locations {
            let Some(left) = room.checked_sub(1 + location.len()) else {
                break;
            };
            room = left;
            bytes.push(BEFORE_PLACE);
            bytes.extend(location.as_bytes());
        }
        bytes.extend(fnv1a(&bytes).to_be_bytes());
        let mut text = String::from(PREFIX);
        for byte in bytes {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

// The text is a secret, as that of `Handle::reveal` is.
#[cfg(feature = "serde")]
impl serde::Serialize for Handle {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.reveal())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Handle {
    fn deserialize<D: serde::Deserializer<'de>>(text: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(text)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl FromStr for Handle {
    type Err = Error;

    /// Parses the text from [`Handle::reveal`]. The error does not repeat the text.
    fn from_str(text: &str) -> Result<Self, Error> {
        let Some(digits) = text.strip_prefix(PREFIX) else {
            let rule = match is_of_another_version(text) {
                true => "of another version of leasehold",
                false => "none that leasehold made: it would begin with lh1_",
            };
            return Err(refused(rule));
        };
        let bytes = from_hex(digits).ok_or_else(damaged)?;
        let (record, checksum) = bytes.split_last_chunk::<8>().ok_or_else(damaged)?;
        if fnv1a(record) != u64::from_be_bytes(*checksum) {
            return Err(damaged());
        }
        read(record)
    }
}

/// Reads a record whose checksum is right.
pub(crate) fn read(record: &[u8]) -> Result<Handle, Error> {
    let handle = fields(record).ok_or_else(damaged)?;
    if handle.owner.plausible_since().is_none() || handle.fence > Fence::MAX {
        return Err(refused(
            "of a machine whose clock was wrong: its date or its fence is after the year 2112",
        ));
    }
    Ok(handle)
}

fn fields(record: &[u8]) -> Option<Handle> {
    let (mode, record) = record.split_first()?;
    let mode = match *mode {
        EXCLUSIVE => Mode::Exclusive,
        SHARED => Mode::Shared,
        permits => Mode::Permit(Permits::new(permits.into()).ok()?),
    };
    let (client, record) = record.split_first_chunk::<8>()?;
    let (nonce, record) = record.split_first_chunk::<16>()?;
    let owner = Owner::from_bits((u64::from_be_bytes(*client), u128::from_be_bytes(*nonce)));
    let mut rest = record;
    let mut next = || {
        let (number, behind) = rest.split_first_chunk::<8>()?;
        rest = behind;
        Some(u64::from_be_bytes(*number))
    };
    let (ttl, delay, fence) = (next()?, next()?, next()?);
    let (deadline, hold, boot) = (next()?, next()?, next()?);
    let text = str::from_utf8(rest).ok()?;
    let mut parts = text.split(char::from(BEFORE_PLACE));
    let key = Key::new(parts.next()?).ok()?;
    if text.len() - key.as_str().len() > LOCATIONS_MAX {
        return None;
    }
    Some(Handle {
        key,
        owner,
        mode,
        fence: Fence::new(fence)?,
        ttl: Duration::from_nanos(ttl),
        delay: Duration::from_nanos(delay),
        deadline: BootInstant::from_nanos(deadline),
        hold_deadline: (hold != NO_END).then(|| BootInstant::from_nanos(hold)),
        boot: BootId::from_bits(boot),
        locations: parts.map(str::to_owned).collect(),
    })
}

fn damaged() -> Error {
    refused("damaged: a part is missing, or was changed")
}

fn refused(rule: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("the handle is {rule}"))
}

/// Returns whether the text is `lh`, a version number other than ours, and `_`.
fn is_of_another_version(text: &str) -> bool {
    let number = text
        .strip_prefix("lh")
        .and_then(|rest| rest.split_once('_'));
    number
        .is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || digits.len() > DIGITS_MAX {
        return None;
    }
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    let pairs = digits.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| u8::try_from(digit(&pair[0])? * 16 + digit(&pair[1])?).ok();
    pairs.map(byte).collect()
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

const PREFIX: &str = "lh1_";
const EXCLUSIVE: u8 = 0;
/// Greater than any number of permits.
const SHARED: u8 = 255;
const NO_END: u64 = u64::MAX;
/// The size of the record with the longest key.
const DIGITS_MAX: usize = 2 * (1 + 24 + 6 * 8 + Key::MAX_BYTES + LOCATIONS_MAX + 8);

/// Precedes each location of the store. A name has no control characters.
const BEFORE_PLACE: u8 = 0;

/// The maximum size of the locations, in bytes; those that do not fit are left out.
const LOCATIONS_MAX: usize = 800;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::SystemEntropy;
    use crate::env::clock::WallTime;
    use crate::types::ClientId;

    const DATE: WallTime = WallTime::from_micros(1_795_000_000_000_000);

    fn handle(key: &str, mode: Mode) -> Handle {
        Handle {
            key: Key::new(key).unwrap(),
            owner: Owner::at(ClientId::random(&SystemEntropy), DATE, &SystemEntropy),
            mode,
            fence: Fence::MAX,
            ttl: Duration::from_secs(30),
            delay: Duration::from_millis(1),
            deadline: BootInstant::from_nanos(7),
            hold_deadline: None,
            boot: BootId::of_this_process().unwrap(),
            locations: vec!["Redis a:1".into(), "Redis b:1/2".into()],
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn handle_survives_json_as_its_text() {
        let handle = handle("deploy", Mode::Exclusive);
        let json = serde_json::to_string(&handle).unwrap();
        assert_eq!(json, format!("{:?}", handle.reveal()));
        assert_eq!(serde_json::from_str::<Handle>(&json).unwrap(), handle);
    }

    fn refusal(text: &str) -> String {
        let error = text.parse::<Handle>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.to_string()
    }

    #[test]
    fn a_handle_survives_its_text_form() {
        let permit = |count| Mode::Permit(Permits::new(count).unwrap());
        let longest = "ü".repeat(Key::MAX_BYTES / 2);
        for mode in [Mode::Exclusive, Mode::Shared, permit(1), permit(128)] {
            for key in ["deploy", longest.as_str()] {
                let mut handle = handle(key, mode);
                assert_eq!(handle.reveal().parse::<Handle>().unwrap(), handle);
                handle.hold_deadline = Some(BootInstant::from_nanos(9));
                assert_eq!(handle.reveal().parse::<Handle>().unwrap(), handle);
            }
        }
    }

    #[test]
    fn missing_places_are_read_and_extra_ones_cut() {
        let mut handle = handle("deploy", Mode::Exclusive);
        handle.locations.clear();
        assert_eq!(handle.reveal().parse::<Handle>().unwrap(), handle);
        handle.locations = vec!["x".repeat(LOCATIONS_MAX / 2); 3];
        let read = handle.reveal().parse::<Handle>().unwrap();
        assert_eq!(read.locations, handle.locations[..1]);
    }

    #[test]
    fn the_text_needs_no_quotes_anywhere() {
        let text = handle("a b'\"$(x)&?/ü", Mode::Exclusive).reveal();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        assert!(text.chars().all(is_plain), "{text}");
    }

    #[test]
    fn damaged_text_is_detected_and_not_repeated() {
        let text = handle("deploy", Mode::Exclusive).reveal();
        for place in PREFIX.len()..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[place] = if changed[place] == b'0' { b'1' } else { b'0' };
            let changed = String::from_utf8(changed).unwrap();
            let refusal = refusal(&changed);
            assert!(refusal.contains("damaged"), "{refusal}");
            assert!(!refusal.contains(&changed[8..24]), "{refusal}");
        }
        for end in PREFIX.len()..text.len() {
            assert!(text[..end].parse::<Handle>().is_err(), "{end}");
        }
        for strange in [
            &*format!("{text}0"),
            &*format!("{text}00"),
            &*format!("{PREFIX}{}", "0".repeat(DIGITS_MAX + 2)),
            "lh1_äöü",
        ] {
            assert!(refusal(strange).contains("damaged"));
        }
    }

    #[test]
    fn handle_of_a_wrong_clock_is_refused() {
        let mut dated = handle("deploy", Mode::Exclusive);
        let wrong = WallTime::from_micros(DATE.as_micros() * 1_000);
        dated.owner = Owner::at(dated.owner.client(), wrong, &SystemEntropy);
        let mut fenced = handle("deploy", Mode::Exclusive);
        fenced.fence = Fence::new(wrong.as_micros()).unwrap();
        for handle in [dated, fenced] {
            assert!(refusal(&handle.reveal()).contains("2112"));
        }
    }

    #[test]
    fn foreign_text_and_other_versions_are_distinguished() {
        assert!(refusal("lh2_00").contains("another version"));
        for text in ["", "x", "lh_00", "lhx_00", " lh1_00", "LH1_00"] {
            assert!(refusal(text).contains("begin with lh1_"), "{text:?}");
        }
    }

    #[test]
    fn debug_shows_nothing_that_would_free_the_lock() {
        let handle = handle("deploy", Mode::Exclusive);
        let shown = format!("{handle:?}");
        assert!(shown.contains("deploy"), "{shown}");
        let owner = handle.owner.to_string();
        assert!(!shown.contains(&owner[..16]) && !shown.contains(&owner[17..]));
        assert!(!shown.contains(&handle.reveal()[4..]));
    }
}
