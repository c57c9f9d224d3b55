use std::net::Ipv4Addr;
use std::sync::Arc;

use leasehold::background;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a proxy does with the bytes that come from the server.
pub(crate) type Rewrite = Arc<dyn Fn(&mut Vec<u8>) + Send + Sync>;

/// Listens on a free port and passes everything on to `port`. Lives as long as the test's runtime.
pub(crate) async fn proxy(port: u16, rewrite: Rewrite) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let own = listener.local_addr().unwrap().port();
    background::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.unwrap().into_split();
            background::spawn(async move {
                let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
            });
            let rewrite = Arc::clone(&rewrite);
            background::spawn(async move {
                let mut buffer = vec![0; 64 * 1024];
                while let Ok(count) = from_server.read(&mut buffer).await
                    && count > 0
                {
                    let mut bytes = buffer[..count].to_vec();
                    rewrite(&mut bytes);
                    if to_client.write_all(&bytes).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    own
}

/// Listens on a free port and answers everything with `answer`.
pub(crate) async fn parrot(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let own = listener.local_addr().unwrap().port();
    background::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            background::spawn(async move {
                let mut buffer = [0; 4096];
                while let Ok(count) = client.read(&mut buffer).await
                    && count > 0
                    && client.write_all(answer).await.is_ok()
                {}
            });
        }
    });
    own
}
