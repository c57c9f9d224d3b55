//! An HTTP handler that runs a request once for each `Idempotency-Key`. A repeated request gets the first answer.
#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::routing::post;
use leasehold::{Client, ErrorKind, memory::MemoryStore};
use tower::ServiceExt as _;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[derive(Clone)]
struct App {
    locks: Client,
    payments: Arc<AtomicU32>,
}

async fn pay(
    State(app): State<App>,
    headers: HeaderMap,
    order: String,
) -> Result<String, (StatusCode, String)> {
    let key = headers
        .get("Idempotency-Key")
        .and_then(|key| key.to_str().ok());
    let key = key.ok_or((StatusCode::BAD_REQUEST, "no Idempotency-Key".to_owned()))?;

    let request = app.locks.once(format!("payment/{key}")).payload(&order);
    let run = request.run(async |guard| {
        // Pass the fence on: a service that compares fences refuses a late attempt.
        println!("paying {order} with fence {}", guard.fence());
        let number = app.payments.fetch_add(1, Ordering::Relaxed) + 1;
        Ok::<_, String>(format!("payment {number} of {order}"))
    });
    match run.await {
        Ok(Ok(result)) => Ok(String::from_utf8_lossy(&result.bytes).into_owned()),
        Ok(Err(declined)) => Err((StatusCode::PAYMENT_REQUIRED, declined)),
        // The key was used for another order.
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            Err((StatusCode::UNPROCESSABLE_ENTITY, error.to_string()))
        }
        Err(error) => Err((StatusCode::SERVICE_UNAVAILABLE, error.to_string())),
    }
}

#[tokio::main]
pub(crate) async fn main() -> Outcome<()> {
    let app = App {
        locks: Client::new(MemoryStore::new()),
        payments: Arc::default(),
    };
    let router = Router::new().route("/payments", post(pay)).with_state(app);
    // A service listens: axum::serve(TcpListener::bind("0.0.0.0:8080").await?, router).await?
    for (key, order, status, answer) in [
        (Some("k1"), "EUR 12", 200, "payment 1 of EUR 12"),
        (Some("k1"), "EUR 12", 200, "payment 1 of EUR 12"),
        (Some("k2"), "EUR 12", 200, "payment 2 of EUR 12"),
        (Some("k1"), "EUR 99", 422, "payload"),
        (None, "EUR 12", 400, "no Idempotency-Key"),
    ] {
        let mut request = Request::post("/payments");
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        let request = request.body(Body::from(order))?;
        let response = router.clone().oneshot(request).await?;
        assert_eq!(response.status().as_u16(), status);
        let text = to_bytes(response.into_body(), 1024).await?;
        let text = String::from_utf8(text.to_vec())?;
        assert!(text.contains(answer), "{text}");
    }
    Ok(())
}
