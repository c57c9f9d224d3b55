use leasehold::Key;
use leasehold_quorum::Notification;

use super::lock_value::read_entry;
use crate::resp::Value;

/// Reads a message that was pushed on a client's channel, from a member whose lock names begin with `prefix`.
///
/// Every user of the server may publish to the channel, so this ignores a message that makes no sense.
pub fn read_notification(prefix: &str, pushed: &[Value]) -> Option<Notification> {
    let [kind, _channel, message] = pushed else {
        return None;
    };
    if kind.as_bytes() != Some(b"message") {
        return None;
    }
    let (entry, lock) = message.as_text()?.strip_prefix("turn ")?.split_once(' ')?;
    let (waiter, mode) = read_entry(entry)?;
    Some(Notification {
        key: Key::new(lock.strip_prefix(prefix)?).ok()?,
        waiter,
        mode,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::Mode;

    const WAITER: &str = "0123456789abcdef.0123456789abcdef0123456789abcdef";

    fn pushed(kind: &str, message: &str) -> Vec<Value> {
        let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        vec![text(kind), text("leasehold:inbox:0"), text(message)]
    }

    #[test]
    fn notification_names_lock_waiter_and_mode() {
        for (mark, mode) in [("", Mode::Exclusive), ("/s", Mode::Shared)] {
            let message = pushed("message", &format!("turn {WAITER}{mark} app:a b"));
            let read = read_notification("app:", &message).unwrap();
            assert_eq!(read.key.as_str(), "a b");
            assert_eq!((read.waiter.to_string(), read.mode), (WAITER.into(), mode));
        }
    }

    #[test]
    fn other_messages_are_ignored() {
        for message in [
            String::new(),
            "turn".into(),
            format!("turn {WAITER}"),
            format!("turn {WAITER} other:key"),
            format!("turn {WAITER} app:"),
            format!("turn {WAITER}/x app:key"),
            "turn somebody app:key".into(),
            format!("later {WAITER} app:key"),
        ] {
            let read = read_notification("app:", &pushed("message", &message));
            assert_eq!(read, None, "{message:?}");
        }
        let subscribed = pushed("subscribe", &format!("turn {WAITER} app:a"));
        assert_eq!(read_notification("app:", &subscribed), None);
    }
}
