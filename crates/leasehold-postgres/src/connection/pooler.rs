//! Sessions behind a connection pooler, which drops the settings that a client asks for.

use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{Clock, within};
use leasehold::store::background;
use leasehold::{Error, ErrorKind};
use tokio_postgres::Client;

use crate::connection::bounded::Heard;
use crate::connection::connect::Place;
use crate::connection::failure;
use crate::url::settings_as_sql;

/// Sets what the pooler dropped, if the session belongs to this client alone. A pooler in transaction mode also gives it to
/// others between two statements. Then notifications get lost, and others get the settings.
///
/// # Errors
///
/// The pooler shares sessions, or has none left.
pub(crate) async fn take_over(
    place: &Arc<Place>,
    client: &Client,
    clock: &dyn Clock,
) -> Result<(), Error> {
    let (other, driver) = place.connect(&Heard::default()).await?;
    let driving = background::spawn(driver.run());
    let probing = is_shared(client, &other);
    let is_shared = within(clock, clock.now() + PROBE_MAX, probing).await;
    driving.abort();
    match is_shared {
        Some(Ok(false)) => client
            .batch_execute(&settings_as_sql())
            .await
            .map_err(failure::of_connecting),
        Some(Ok(true)) => {
            // Others would find what this client prepared. They may have got the session meanwhile.
            let _ = client.batch_execute("deallocate all; unlisten *").await;
            Err(Error::new(ErrorKind::Refused, SHARED))
        }
        Some(Err(error)) => Err(failure::of_connecting(error)),
        None => Err(Error::new(ErrorKind::Refused, NONE_LEFT)),
    }
}

/// Whether the pooler gives `client` another session of the server while `other` is in a transaction. In transaction mode
/// it gives out the session that was used last, so one try is enough unless other clients are busy.
async fn is_shared(client: &Client, other: &Client) -> Result<bool, tokio_postgres::Error> {
    let own = session(client).await?;
    for _ in 0..TRIES {
        other.batch_execute("begin").await?;
        let is_shared = session(other).await? == own || session(client).await? != own;
        other.batch_execute("rollback").await?;
        if is_shared {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn session(client: &Client) -> Result<i32, tokio_postgres::Error> {
    let row = client.query_typed_one("select pg_backend_pid()", &[]).await;
    row?.try_get(0)
}

const TRIES: usize = 8;

/// How long the pooler may take for all tries.
const PROBE_MAX: Duration = Duration::from_secs(3);

const SHARED: &str = "the connection pooler runs in transaction mode, which loses notifications and settings; set \
     pool_mode = session for this database, or give the address of the server itself";

const NONE_LEFT: &str = "the connection pooler has no second session for this client; raise its pool_size, or give the \
     address of the server itself";
