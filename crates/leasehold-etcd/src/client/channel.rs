//! Opens an HTTP/2 connection.

use std::sync::Arc;

use http::Uri;
use hyper_util::rt::TokioIo;
use leasehold::{Error, ErrorKind};
use leasehold_credentials::{HostPort, TlsClient, TlsSource, TlsStream, connect, handshake};
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use super::failure::shown;

/// The name of HTTP/2 in a TLS handshake.
const HTTP2: &[u8] = b"h2";

/// Returns the encryption of connections with these files or this configuration.
pub(super) fn encryption(source: TlsSource) -> Arc<TlsClient> {
    Arc::new(TlsClient::new(source, &[HTTP2]))
}

/// Connects to a server. The channel connects again by itself, with the files as they are then.
pub(super) async fn open(
    server: &HostPort,
    tls: Option<&Arc<TlsClient>>,
) -> Result<Channel, Error> {
    let endpoint = Endpoint::from_shared(format!("http://{server}")).map_err(unusable)?;
    let Some(tls) = tls else {
        let server = server.clone();
        let connector = service_fn(move |_: Uri| {
            let server = server.clone();
            async move { connected(&server).await.map(TokioIo::new) }
        });
        let connected = endpoint.connect_with_connector(connector).await;
        return connected.map_err(unreachable);
    };
    let origin: Uri = format!("https://{server}").parse().map_err(unusable)?;
    let (server, tls) = (server.clone(), Arc::clone(tls));
    let connector = service_fn(move |_: Uri| {
        let (server, tls) = (server.clone(), Arc::clone(&tls));
        async move { encrypted(&server, &tls).await.map(TokioIo::new) }
    });
    let endpoint = endpoint.origin(origin);
    let connected = endpoint.connect_with_connector(connector).await;
    connected.map_err(unreachable)
}

async fn encrypted(server: &HostPort, tls: &TlsClient) -> Result<TlsStream<TcpStream>, Error> {
    let config = tls.config().await?;
    let stream = connected(server).await?;
    let stream = handshake(config, stream, &server.host).await?;
    if stream.get_ref().1.alpn_protocol() != Some(HTTP2) {
        let text = "the server speaks TLS, but not HTTP/2, on this port; is it the port for clients of etcd?";
        return Err(Error::new(ErrorKind::Refused, text));
    }
    Ok(stream)
}

/// Connects to the first address of the server that answers.
async fn connected(server: &HostPort) -> Result<TcpStream, Error> {
    let stream = connect(&server.host, server.port).await;
    let stream = stream.map_err(Error::no_connection)?;
    // Without it, small requests wait for the answers to earlier ones. They then are slower, not wrong.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

fn unusable(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::InvalidInput, error.to_string()).with_source(error)
}

fn unreachable(error: tonic::transport::Error) -> Error {
    let sources = std::iter::successors(Some(&error as &dyn std::error::Error), |it| it.source());
    let mut ours = sources.filter_map(|it| it.downcast_ref::<Error>());
    // What one server refuses, such as TLS, another one may accept.
    if let Some(error) = ours.find(|error| error.is_unreachable()) {
        return error.clone();
    }
    let text = shown(&error, &error.to_string());
    Error::new(ErrorKind::Unreachable, text)
}
