//! The wire format: requests as they arrive, and replies as they are sent.
//!
//! Protocol: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.

use std::ops::Range;

use crate::number;
use crate::reply::Reply;

/// The words of a request, as ranges of the received bytes.
pub(crate) struct Request {
    pub(crate) words: Vec<Range<usize>>,
    /// The start of the next request.
    pub(crate) end: usize,
}

/// The bytes are not a request.
#[derive(Debug, PartialEq)]
pub(crate) struct NotRequest;

/// Reads the request that begins at `start`. Returns `None` if it has not fully arrived.
pub(crate) fn request(bytes: &[u8], start: usize) -> Result<Option<Request>, NotRequest> {
    let Some((count, mut at)) = header(bytes, start, b'*')? else {
        return Ok(None);
    };
    let mut words = Vec::with_capacity(count.min(64));
    for _ in 0..count {
        let Some((length, begin)) = header(bytes, at, b'$')? else {
            return Ok(None);
        };
        let end = begin.checked_add(length).ok_or(NotRequest)?;
        if bytes.len() < end + 2 {
            return Ok(None);
        }
        words.push(begin..end);
        at = end + 2;
    }
    Ok(Some(Request { words, end: at }))
}

/// Reads a line with a sign and a number. Also returns where the next line begins.
fn header(bytes: &[u8], at: usize, sign: u8) -> Result<Option<(usize, usize)>, NotRequest> {
    let line = &bytes[at..];
    let Some(length) = line.iter().position(|byte| *byte == b'\r') else {
        return if line.len() > 32 {
            Err(NotRequest)
        } else {
            Ok(None)
        };
    };
    match line.get(length + 1) {
        Some(b'\n') => {}
        Some(_) => return Err(NotRequest),
        None => return Ok(None),
    }
    let number = line[..length].strip_prefix(&[sign]).ok_or(NotRequest)?;
    let number = number::integer(number).map_err(|_| NotRequest)?;
    let number = usize::try_from(number).map_err(|_| NotRequest)?;
    Ok(Some((number, at + length + 2)))
}

/// Appends a reply in RESP3 or RESP2.
pub(crate) fn write(out: &mut Vec<u8>, reply: Reply, is_resp3: bool) {
    if is_resp3 {
        write_plain(out, &reply, b"_\r\n");
    } else {
        write_plain(out, &reply.into_resp2(), b"$-1\r\n");
    }
}

fn write_plain(out: &mut Vec<u8>, reply: &Reply, nil: &[u8]) {
    let list = |out: &mut Vec<u8>, sign: u8, items: &[Reply]| {
        count(out, sign, items.len() as i64);
        for item in items {
            write_plain(out, item, nil);
        }
    };
    match reply {
        Reply::Simple(text) => line(out, b'+', text.as_bytes()),
        Reply::Error(text) => line(out, b'-', text.as_bytes()),
        Reply::Integer(number) => count(out, b':', *number),
        Reply::Double(number) => line(out, b',', number::text(*number).as_bytes()),
        Reply::Bulk(bytes) => {
            count(out, b'$', bytes.len() as i64);
            out.extend_from_slice(bytes);
            out.extend_from_slice(b"\r\n");
        }
        Reply::Nil => out.extend_from_slice(nil),
        Reply::Array(items) => list(out, b'*', items),
        Reply::Push(items) => list(out, b'>', items),
        Reply::Map(pairs) => {
            count(out, b'%', pairs.len() as i64);
            for item in pairs.iter().flat_map(|(key, value)| [key, value]) {
                write_plain(out, item, nil);
            }
        }
    }
}

fn line(out: &mut Vec<u8>, sign: u8, text: &[u8]) {
    out.push(sign);
    // A line ends at the first line break, so the text must not contain any.
    out.extend(text.iter().map(|byte| match byte {
        b'\r' | b'\n' => b' ',
        other => *other,
    }));
    out.extend_from_slice(b"\r\n");
}

fn count(out: &mut Vec<u8>, sign: u8, number: i64) {
    out.push(sign);
    number::write(out, number);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_once_complete() {
        let bytes = b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n*1\r\n$4\r\nPING\r\n";
        let first = request(bytes, 0).unwrap().unwrap();
        let words: Vec<_> = first
            .words
            .iter()
            .map(|word| &bytes[word.clone()])
            .collect();
        assert_eq!(words, [&b"GET"[..], b"a\r\nb"]);
        let second = request(bytes, first.end).unwrap().unwrap();
        assert_eq!(second.end, bytes.len());
        for length in 0..first.end {
            assert!(request(&bytes[..length], 0).unwrap().is_none(), "{length}");
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        for wrong in [
            "PING\r\n",
            "*1\r\n+PING\r\n",
            "*-1\r\n",
            "*x\r\n",
            "*1\r\n$-1\r\n",
        ] {
            assert!(request(wrong.as_bytes(), 0).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn replies_depend_on_the_protocol() {
        let written = |reply: &Reply, is_resp3| {
            let mut out = Vec::new();
            write(&mut out, reply.clone(), is_resp3);
            String::from_utf8(out).unwrap()
        };
        let map = Reply::Map(vec![(Reply::bulk("a"), Reply::Double(1.5))]);
        let push = Reply::Push(vec![Reply::Nil, Reply::Integer(-1)]);
        assert_eq!(written(&map, true), "%1\r\n$1\r\na\r\n,1.5\r\n");
        assert_eq!(written(&map, false), "*2\r\n$1\r\na\r\n$3\r\n1.5\r\n");
        assert_eq!(written(&push, true), ">2\r\n_\r\n:-1\r\n");
        assert_eq!(written(&push, false), "*2\r\n$-1\r\n:-1\r\n");
        assert_eq!(
            written(&Reply::Error("ERR a\nb".into()), true),
            "-ERR a b\r\n"
        );
    }
}
