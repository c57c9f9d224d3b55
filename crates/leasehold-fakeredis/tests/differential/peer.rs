use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{Ipv4Addr, TcpStream};

use leasehold_fakeredis::Reply;
use leasehold_testkit::servers::LIMIT;

/// A connection to the real server that reads RESP2 and RESP3.
pub(crate) struct Peer(BufReader<TcpStream>);

impl Peer {
    pub(crate) fn open(port: u16) -> Self {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    pub(crate) fn send(&mut self, request: &[u8]) {
        self.0.get_mut().write_all(request).unwrap();
    }

    pub(crate) fn read(&mut self) -> Reply {
        read(&mut self.0)
    }
}

/// A command as bytes.
pub(crate) fn request(words: &[String]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
    bytes
}

/// Reads all replies in `bytes`.
pub(crate) fn parse(bytes: &[u8]) -> Vec<Reply> {
    let mut rest = BufReader::new(bytes);
    let mut replies = Vec::new();
    while !rest.fill_buf().unwrap().is_empty() {
        replies.push(read(&mut rest));
    }
    replies
}

fn read<R: Read>(from: &mut BufReader<R>) -> Reply {
    let mut line = String::new();
    from.read_line(&mut line).expect("a reply comes in time");
    let (sign, rest) = line.trim_end().split_at(1);
    let number = || rest.parse::<i64>().unwrap();
    match sign {
        "+" => Reply::Simple(rest.to_owned().into()),
        "-" => Reply::Error(rest.to_owned().into()),
        ":" => Reply::Integer(number()),
        "," => Reply::Double(rest.parse().unwrap()),
        "_" => Reply::Nil,
        "$" | "*" if number() < 0 => Reply::Nil,
        "$" => {
            let mut bytes = vec![0; number() as usize + 2];
            from.read_exact(&mut bytes).unwrap();
            bytes.truncate(bytes.len() - 2);
            Reply::Bulk(bytes)
        }
        "*" => Reply::Array((0..number()).map(|_| read(from)).collect()),
        ">" => Reply::Push((0..number()).map(|_| read(from)).collect()),
        "%" => Reply::Map((0..number()).map(|_| (read(from), read(from))).collect()),
        other => panic!("a reply begins with {other:?}"),
    }
}
