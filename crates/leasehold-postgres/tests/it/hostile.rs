//! A server that sends without end.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use leasehold::store::background::thread;
use leasehold::{Client, ErrorKind};
use leasehold_postgres::PostgresStore;
use leasehold_testkit::servers::until;

/// More than the sockets of both sides keep.
const BYTES_MAX: u64 = 32 << 20;

fn message(tag: u8, length: u32, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

fn whole(tag: u8, body: &[u8]) -> Vec<u8> {
    message(tag, u32::try_from(body.len() + 4).expect("a length"), body)
}

/// What a server sends after the login, before it repeats the last part without end.
#[derive(Clone, Copy)]
enum Flood {
    Settings,
    Notices,
    Row,
}

/// A server, and the most that a client took from it on one connection.
fn start(flood: Flood) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let most = Arc::<AtomicU64>::default();
    let taken = Arc::clone(&most);
    thread("hostile", move || {
        for stream in listener.incoming().flatten() {
            let mut sent = 0;
            // The client closes the connection.
            let _ = serve(stream, flood, &mut sent);
            taken.fetch_max(sent, Ordering::SeqCst);
        }
    })
    .expect("a thread");
    (port, most)
}

fn serve(mut stream: TcpStream, flood: Flood, sent: &mut u64) -> io::Result<()> {
    let mut request = [0; 4096];
    let _ = stream.read(&mut request)?;
    stream.write_all(&whole(b'R', &[0; 4]))?;
    if let Flood::Row = flood {
        stream.write_all(&whole(b'Z', b"I"))?;
        let _ = stream.read(&mut request)?;
        stream.write_all(&message(b'D', 2_000_000_000, &[]))?;
    }
    for number in 0_u64.. {
        let bytes = match flood {
            Flood::Settings => whole(b'S', format!("name{number}\0value\0").as_bytes()),
            Flood::Notices => whole(b'N', b"SNOTICE\0C00000\0Mtext\0\0"),
            Flood::Row => vec![0; 1 << 16],
        };
        stream.write_all(&bytes)?;
        *sent += bytes.len() as u64;
        assert!(*sent < 4 * BYTES_MAX, "the client takes everything");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn client_takes_no_endless_answer() {
    for (flood, reason) in [
        (Flood::Settings, "before it is ready for requests"),
        (Flood::Notices, "before it is ready for requests"),
        (Flood::Row, "in one message"),
    ] {
        let (port, most) = start(flood);
        let url = format!("postgres://u@127.0.0.1:{port}/x");
        let client = Client::new(PostgresStore::new(url).expect("a URL"));
        let error = client
            .lock("job")
            .try_acquire()
            .await
            .expect_err("an error");
        assert_eq!(error.kind(), ErrorKind::InvalidResponse, "{error}");
        assert!(error.to_string().contains(reason), "{error}");
        tokio::task::block_in_place(|| {
            until("the connection is closed", || {
                most.load(Ordering::SeqCst) > 0
            });
        });
        let most = most.load(Ordering::SeqCst);
        assert!(most < BYTES_MAX, "{most}");
    }
}
