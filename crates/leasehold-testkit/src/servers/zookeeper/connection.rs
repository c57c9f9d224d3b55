use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// A connection to ZooKeeper that uses no library of ours. Every method blocks.
#[derive(Debug)]
pub struct ZookeeperConnection {
    stream: TcpStream,
    last: i32,
    /// The number of the session.
    pub session: i64,
}

/// The code of an answer about a node that does not exist.
const NO_NODE: i32 = -101;

/// The code of an answer about a node that exists already.
const NODE_EXISTS: i32 = -110;

impl ZookeeperConnection {
    /// Opens a session on the server at `port`, and logs in as `user:password` if that is given.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub fn open(port: u16, login: Option<&str>) -> Self {
        Self::try_open(port, login).unwrap_or_else(|error| panic!("ZooKeeper at {port}: {error}"))
    }

    fn try_open(port: u16, login: Option<&str>) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let mut connection = Self {
            stream,
            last: 0,
            session: 0,
        };
        let mut hello = Vec::new();
        hello.extend([0; 12]);
        hello.extend(4_000_i32.to_be_bytes());
        hello.extend([0; 8]);
        put(&mut hello, &[0; 16]);
        connection.send(&hello)?;
        let answer = connection.receive()?;
        connection.session = i64::from_be_bytes(answer[8..16].try_into().expect("eight bytes"));
        if let Some(login) = login {
            let mut auth = Vec::new();
            auth.extend([-4_i32, 100, 0].map(i32::to_be_bytes).concat());
            put(&mut auth, b"digest");
            put(&mut auth, login.as_bytes());
            connection.send(&auth)?;
            connection.receive()?;
        }
        Ok(connection)
    }

    /// Returns the names of the children of a node; none if it does not exist.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub fn children(&mut self, path: &str) -> Vec<String> {
        let mut body = Vec::new();
        put(&mut body, path.as_bytes());
        body.push(0);
        match self.request(8, &body) {
            Ok(answer) => {
                let mut rest = &answer[..];
                let count = int(&mut rest);
                (0..count).map(|_| text(&mut rest)).collect()
            }
            Err(NO_NODE) => Vec::new(),
            Err(code) => panic!("the children of {path}: {code}"),
        }
    }

    /// Returns the data of a node; `None` if it does not exist.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub fn data(&mut self, path: &str) -> Option<String> {
        let mut body = Vec::new();
        put(&mut body, path.as_bytes());
        body.push(0);
        match self.request(4, &body) {
            Ok(answer) => Some(text(&mut &answer[..])),
            Err(NO_NODE) => None,
            Err(code) => panic!("the data of {path}: {code}"),
        }
    }

    /// Creates a persistent node that everyone may use.
    ///
    /// # Panics
    ///
    /// If it exists, or the server refuses.
    pub fn create(&mut self, path: &str, data: &str) {
        assert!(self.try_create(path, data, false), "{path} exists");
    }

    /// Creates a node that everyone may use, and that stays or ends with the session. Returns `false` if it exists.
    ///
    /// # Panics
    ///
    /// If the server refuses.
    pub fn try_create(&mut self, path: &str, data: &str, is_ephemeral: bool) -> bool {
        let mut body = Vec::new();
        put(&mut body, path.as_bytes());
        put(&mut body, data.as_bytes());
        body.extend([1_i32, 31].map(i32::to_be_bytes).concat());
        put(&mut body, b"world");
        put(&mut body, b"anyone");
        body.extend(i32::from(is_ephemeral).to_be_bytes());
        match self.request(1, &body) {
            Ok(_) => true,
            Err(NODE_EXISTS) => false,
            Err(code) => panic!("{path}: {code}"),
        }
    }

    /// Replaces the data of a node.
    ///
    /// # Panics
    ///
    /// If it does not exist, or the server refuses.
    pub fn set_data(&mut self, path: &str, data: &str) {
        let mut body = Vec::new();
        put(&mut body, path.as_bytes());
        put(&mut body, data.as_bytes());
        body.extend((-1_i32).to_be_bytes());
        let set = self.request(5, &body);
        assert!(set.is_ok(), "{path}: {set:?}");
    }

    /// Deletes a node. Returns whether it was there, without children.
    pub fn delete(&mut self, path: &str) -> bool {
        let mut body = Vec::new();
        put(&mut body, path.as_bytes());
        body.extend((-1_i32).to_be_bytes());
        self.request(2, &body).is_ok()
    }

    /// Deletes a node with all that is below it.
    pub fn delete_all(&mut self, path: &str) {
        for child in self.children(path) {
            self.delete_all(&format!("{path}/{child}"));
        }
        // It may be gone.
        let _ = self.delete(path);
    }

    /// Sends a request, and returns the body of the answer, or its code.
    fn request(&mut self, code: i32, body: &[u8]) -> Result<Vec<u8>, i32> {
        self.last += 1;
        let message = [&self.last.to_be_bytes()[..], &code.to_be_bytes(), body].concat();
        self.send(&message).expect("a request");
        loop {
            let answer = self.receive().expect("an answer");
            let mut rest = &answer[..];
            if int(&mut rest) != self.last {
                continue;
            }
            rest = &rest[8..];
            return match int(&mut rest) {
                0 => Ok(rest.to_vec()),
                code => Err(code),
            };
        }
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let mut frame = Vec::new();
        put(&mut frame, message);
        self.stream.write_all(&frame)
    }

    fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut message = vec![0; usize::try_from(i32::from_be_bytes(length)).expect("a length")];
        self.stream.read_exact(&mut message)?;
        Ok(message)
    }
}

fn put(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend(
        i32::try_from(bytes.len())
            .expect("a short message")
            .to_be_bytes(),
    );
    to.extend(bytes);
}

fn int(from: &mut &[u8]) -> i32 {
    let (first, rest) = from.split_first_chunk().expect("a number");
    *from = rest;
    i32::from_be_bytes(*first)
}

fn text(from: &mut &[u8]) -> String {
    let length = usize::try_from(int(from)).unwrap_or_default();
    let (text, rest) = from.split_at(length);
    *from = rest;
    String::from_utf8_lossy(text).into_owned()
}
