//! The task that keeps the places of a client in queues.

use std::sync::{Arc, Weak};
use std::time::Duration;

use leasehold::clock::Clock;
use leasehold::look::Owner;
use leasehold::store::LockRequest;
use leasehold::{Error, Key};

use super::requests::{KEEP_PLACES, asks, column};
use super::waits::News;
use super::{PostgresInner, PostgresSession};

/// How often the client keeps its places. The server keeps them for four times as long.
const BEAT: Duration = Duration::from_secs(1);

/// The most places in one statement. The server has their rows locked while it runs.
const PORTION: usize = 500;

/// Keeps the places until no request waits, or the session ends.
pub(super) async fn keep(session: Weak<PostgresInner>, clock: Arc<dyn Clock>) {
    let mut is_away = false;
    loop {
        clock.sleep_until(clock.now() + BEAT).await;
        let Some(session) = session.upgrade().map(PostgresSession) else {
            return;
        };
        let waits = &session.0.waits;
        let Some(places) = waits.places() else {
            return;
        };
        match session.keep_places(&places).await {
            Ok(()) if is_away => {
                is_away = false;
                waits.tell_all(&News::Back);
            }
            Ok(()) => {}
            Err(error) => {
                is_away = true;
                waits.tell_all(&News::Away(error));
            }
        }
        waits.listen_again();
    }
}

impl PostgresSession {
    async fn keep_places(&self, places: &[(Owner, Key)]) -> Result<(), Error> {
        for places in places.chunks(PORTION) {
            let keys: Vec<&str> = places.iter().map(|(_, key)| key.as_str()).collect();
            let owners: Vec<String> = places.iter().map(|(owner, _)| owner.to_string()).collect();
            let asking = self.ask(LockRequest::LIMIT_MAX, async |link| {
                let statement = &link.statements[KEEP_PLACES];
                link.client.query_one(statement, &[&keys, &owners]).await
            });
            let row = asking.await.map_err(Error::without_effect)?;
            for (number, rest) in asks(column(&row, 0)?)? {
                if let Some((owner, _)) = places.get(number) {
                    self.0
                        .waits
                        .tell(*owner, rest.map_or(News::Gone, News::Ask));
                }
            }
        }
        Ok(())
    }
}
