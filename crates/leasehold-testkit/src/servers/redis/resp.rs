use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use crate::servers::LIMIT;

/// A bare RESP2 connection, without any library that Leasehold uses: it sends what any foreign client could
/// send.
///
/// Protocol: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.
#[derive(Debug)]
pub struct RespConnection {
    stream: BufReader<TcpStream>,
}

/// One answer of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A simple string, such as `OK`.
    Status(String),
    /// An error, starting with its code.
    Error(String),
    /// An integer.
    Integer(i64),
    /// A string of bytes, as text if it is text.
    Bulk(String),
    /// No value.
    Nil,
    /// Several answers.
    Array(Vec<Self>),
}

impl RespConnection {
    /// Connects to a loopback port. Each answer must arrive within [`LIMIT`].
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    pub fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Sends one command and reads its answer. An error of the server is a [`Reply::Error`].
    ///
    /// # Errors
    ///
    /// Those of the connection, and an error for an answer that is not RESP2.
    pub fn call(&mut self, words: &[&str]) -> io::Result<Reply> {
        self.send(words)?;
        self.receive()
    }

    /// Sends one command and does not wait for its answer.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub fn send(&mut self, words: &[&str]) -> io::Result<()> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.stream.get_mut().write_all(request.as_bytes())
    }

    /// Reads the next answer.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub fn receive(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        let garbage = || io::Error::new(io::ErrorKind::InvalidData, format!("not RESP2: {line:?}"));
        let sort = line.chars().next().ok_or_else(garbage)?;
        let rest = line.get(1..).ok_or_else(garbage)?;
        let number = || rest.parse::<i64>().map_err(|_| garbage());
        Ok(match sort {
            '+' => Reply::Status(rest.into()),
            '-' => Reply::Error(rest.into()),
            ':' => Reply::Integer(number()?),
            '$' => match usize::try_from(number()?) {
                Ok(length) => {
                    let mut bytes = vec![0; length + 2];
                    self.stream.read_exact(&mut bytes)?;
                    bytes.truncate(length);
                    Reply::Bulk(String::from_utf8_lossy(&bytes).into_owned())
                }
                Err(_) => Reply::Nil,
            },
            '*' => match usize::try_from(number()?) {
                Ok(length) => {
                    let items = (0..length).map(|_| self.receive());
                    Reply::Array(items.collect::<io::Result<_>>()?)
                }
                Err(_) => Reply::Nil,
            },
            _ => return Err(garbage()),
        })
    }
}
