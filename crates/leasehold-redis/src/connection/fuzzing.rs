use super::answer::Answer;
use super::reply::{self, Reply, Scan, Unread};

/// All replies that `bytes` begin with.
pub(crate) fn replies(mut bytes: &[u8]) -> Vec<Answer> {
    let mut answers = Vec::new();
    while let Ok((reply, length)) = reply::read(bytes) {
        match reply {
            Reply::Answer(answer) => answers.push(answer),
            Reply::Push(parts) => answers.push(Answer::List(parts)),
        }
        bytes = &bytes[length..];
    }
    answers
}

/// Compares a scan, which sees one more byte each time, with what is read of the whole.
pub(crate) fn scan(bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(1_000)];
    let mut scan = Scan::default();
    let whole = (0..=bytes.len()).find_map(|end| match scan.is_whole(&bytes[..end]) {
        Ok(false) => None,
        Ok(true) => Some(Ok(end)),
        Err(unread) => Some(Err(unread)),
    });
    match reply::read(bytes) {
        Ok((_, length)) => assert_eq!(whole, Some(Ok(length))),
        Err(Unread::Incomplete) => assert_eq!(whole, None),
        // A scan does not look into items.
        Err(Unread::Malformed | Unread::TooLong(_)) => {}
    }
}
