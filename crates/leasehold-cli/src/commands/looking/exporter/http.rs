//! The port of the exporter.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use leasehold::store::{BoxFuture, background};
use tokio::net::TcpListener;

use crate::output::Output;
use crate::output::failure::Failure;
use crate::output::message::Message;

/// How long a client of the port may take to send its request.
const REQUEST_MAX: Duration = Duration::from_secs(5);

/// Returns the metrics of the moment.
pub(super) type Metrics = Arc<dyn Fn() -> BoxFuture<'static, String> + Send + Sync>;

/// Serves the metrics at `/metrics`, until the process ends.
pub(super) async fn serve(
    address: SocketAddr,
    metrics: Metrics,
    output: &Output,
) -> Result<Infallible, Failure> {
    let failed = |error| Failure::of(&format!("cannot listen on {address}"), &error);
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    // The system chooses the port if the user gave 0.
    let address = listener.local_addr().map_err(failed)?;
    let text = format!("serving metrics at http://{address}/metrics");
    output.print_message(&Message::Notice(&text));
    loop {
        // A connection that fails concerns its client alone.
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let metrics = Arc::clone(&metrics);
        let service = service_fn(move |request: Request<Incoming>| {
            let metrics = Arc::clone(&metrics);
            async move { Ok::<_, Infallible>(answer(&request, &metrics).await) }
        });
        background::spawn(async move {
            let mut server = hyper::server::conn::http1::Builder::new();
            server
                .timer(TokioTimer::new())
                .header_read_timeout(REQUEST_MAX);
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(request: &Request<Incoming>, metrics: &Metrics) -> Response<String> {
    if request.uri().path() != "/metrics" {
        let mut response = Response::new("the metrics are at /metrics\n".to_owned());
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    }
    let mut response = Response::new(metrics().await);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
