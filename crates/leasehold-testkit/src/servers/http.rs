use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// How long a server may take for an answer.
const LIMIT: Duration = Duration::from_secs(10);

/// Returns what a server on a loopback port answers to a request for `path`, without the header.
pub(super) fn get(port: u16, path: &str) -> io::Result<String> {
    let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    connection.set_read_timeout(Some(LIMIT))?;
    write!(connection, "GET {path} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    Ok(body.to_owned())
}
