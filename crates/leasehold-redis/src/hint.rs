//! What a server tells a waiter: the messages in a client's inbox.

use std::time::Duration;

use leasehold::{Hint, Key, Permits, Slot, Word};

/// Reads a message to a member whose locks have `prefix` in front of their names. Anybody may write
/// to the channel: what makes no sense is none of ours.
pub(crate) fn read(prefix: &str, message: &[u8]) -> Option<Hint> {
    let (word, rest) = std::str::from_utf8(message).ok()?.split_once(' ')?;
    let (word, slot) = match word.split_once('/') {
        Some(("turn", slot)) => ("turn", Some(read_slot(slot)?)),
        Some(_) => return None,
        None => (word, None),
    };
    let (word, rest) = match word {
        "turn" => (Word::YourTurn, rest),
        "soon" => {
            let (ms, rest) = rest.split_once(' ')?;
            let remaining = Duration::from_millis(ms.parse().ok()?);
            (Word::Soon { remaining }, rest)
        }
        _ => return None,
    };
    let (waiter, lock) = rest.split_once(' ')?;
    Some(Hint {
        key: Key::new(lock.strip_prefix(prefix)?).ok()?,
        waiter: waiter.parse().ok()?,
        word,
        slot,
    })
}

/// Of how many permits it is one, only the waiter knows.
fn read_slot(text: &str) -> Option<Slot> {
    let most = Permits::new(Permits::MAX).ok()?;
    let slot = Slot::new(text.parse().ok()?, most).ok()?;
    (slot.to_string() == text).then_some(slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITER: &str = "0123456789abcdef.0123456789abcdef0123456789abcdef";

    #[test]
    fn a_word_is_read_with_the_name_that_the_lock_has_here() {
        let hint = read("app:", format!("turn {WAITER} app:a b").as_bytes()).unwrap();
        assert_eq!(hint.key.as_str(), "a b");
        assert_eq!(hint.waiter.to_string(), WAITER);
        assert_eq!(hint.word, Word::YourTurn);
        let hint = read("", format!("soon 1000 {WAITER} app:a").as_bytes()).unwrap();
        assert_eq!(hint.key.as_str(), "app:a");
        let remaining = Duration::from_secs(1);
        assert_eq!(hint.word, Word::Soon { remaining });
        assert_eq!(hint.slot, None);
        let hint = read("", format!("turn/127 {WAITER} app:a").as_bytes()).unwrap();
        assert_eq!((hint.word, hint.slot.unwrap().get()), (Word::YourTurn, 127));
    }

    #[test]
    fn what_makes_no_sense_is_not_heard() {
        for message in [
            String::new(),
            "turn".into(),
            format!("turn {WAITER}"),
            format!("turn {WAITER} other:key"),
            format!("turn {WAITER} app:"),
            "turn somebody app:key".into(),
            format!("turn/ {WAITER} app:key"),
            format!("turn/03 {WAITER} app:key"),
            format!("turn/128 {WAITER} app:key"),
            format!("turn/1/2 {WAITER} app:key"),
            format!("soon/1 1000 {WAITER} app:key"),
            format!("soon {WAITER} app:key"),
            format!("soon -1 {WAITER} app:key"),
            format!("later 5 {WAITER} app:key"),
        ] {
            assert_eq!(read("app:", message.as_bytes()), None, "{message:?}");
        }
        assert_eq!(read("", b"turn \xff x"), None);
    }
}
