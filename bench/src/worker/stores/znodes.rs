use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::error::Fallible;

/// A session of ZooKeeper with one request on its way at a time, and without pings.
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
    last: i32,
}

/// The code of an answer about a node that exists already.
pub(super) const NODE_EXISTS: i32 = -110;

const CREATE: i32 = 1;
const DELETE: i32 = 2;
const SET_DATA: i32 = 5;

/// In milliseconds.
const SESSION: i32 = 30_000;

/// An answer, or the code of a refusal.
type Answer = Result<(), i32>;

impl Connection {
    pub(super) async fn open(port: u16) -> Fallible<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        stream.set_nodelay(true)?;
        let mut connection = Self {
            stream: BufReader::new(stream),
            last: 0,
        };
        let mut hello = vec![0; 12];
        hello.extend(SESSION.to_be_bytes());
        hello.extend([0; 8]);
        put(&mut hello, &[0; 16])?;
        connection.send(&hello).await?;
        connection.receive().await?;
        Ok(connection)
    }

    /// Creates a node for everyone, which ends with the session or stays.
    pub(super) async fn create(&mut self, path: &str, is_ephemeral: bool) -> Fallible<Answer> {
        let mut body = Vec::new();
        put(&mut body, path.as_bytes())?;
        put(&mut body, b"x")?;
        body.extend([1_i32, 31].map(i32::to_be_bytes).concat());
        put(&mut body, b"world")?;
        put(&mut body, b"anyone")?;
        body.extend(i32::from(is_ephemeral).to_be_bytes());
        self.request(CREATE, &body).await
    }

    pub(super) async fn set_data(&mut self, path: &str, data: &[u8]) -> Fallible<Answer> {
        let mut body = Vec::new();
        put(&mut body, path.as_bytes())?;
        put(&mut body, data)?;
        body.extend((-1_i32).to_be_bytes());
        self.request(SET_DATA, &body).await
    }

    pub(super) async fn delete(&mut self, path: &str) -> Fallible<Answer> {
        let mut body = Vec::new();
        put(&mut body, path.as_bytes())?;
        body.extend((-1_i32).to_be_bytes());
        self.request(DELETE, &body).await
    }

    async fn request(&mut self, code: i32, body: &[u8]) -> Fallible<Answer> {
        self.last += 1;
        let message = [&self.last.to_be_bytes()[..], &code.to_be_bytes(), body].concat();
        self.send(&message).await?;
        let answer = self.receive().await?;
        // The number of the request, that of the transaction, and the code.
        let (number, rest) = answer.split_first_chunk().ok_or("a short answer")?;
        let code = rest.get(8..12).ok_or("a short answer")?;
        if i32::from_be_bytes(*number) != self.last {
            return Err("the answer to another request".into());
        }
        Ok(match i32::from_be_bytes(code.try_into()?) {
            0 => Ok(()),
            code => Err(code),
        })
    }

    async fn send(&mut self, message: &[u8]) -> Fallible {
        let mut frame = Vec::new();
        put(&mut frame, message)?;
        Ok(self.stream.get_mut().write_all(&frame).await?)
    }

    async fn receive(&mut self) -> Fallible<Vec<u8>> {
        let length = self.stream.read_i32().await?;
        let mut message = vec![0; usize::try_from(length)?];
        self.stream.read_exact(&mut message).await?;
        Ok(message)
    }
}

/// Appends bytes and their number before them.
fn put(to: &mut Vec<u8>, bytes: &[u8]) -> Fallible {
    to.extend(i32::try_from(bytes.len())?.to_be_bytes());
    to.extend(bytes);
    Ok(())
}
