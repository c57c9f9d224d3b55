use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use leasehold::ClientId;
use leasehold::clock::BootInstant;

/// When each client said lately, on one connection, who it is.
#[derive(Debug, Default)]
pub(super) struct Introductions(Mutex<HashMap<ClientId, BootInstant>>);

/// How often a client that takes and renews locks says who it is.
const EVERY: Duration = Duration::from_secs(60);

impl Introductions {
    /// Whether `client` has to say who it is, which counts as done: the connection ends if it cannot
    /// be sent.
    pub(super) fn is_due(&self, client: ClientId, now: BootInstant) -> bool {
        let mut introduced = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lately = |at: &BootInstant| now.since(*at) < EVERY;
        if introduced.get(&client).is_some_and(lately) {
            return false;
        }
        introduced.retain(|_, at| lately(at));
        introduced.insert(client, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use leasehold::ambient::SystemEntropy;

    use super::*;

    fn at(seconds: u64) -> BootInstant {
        BootInstant::from_nanos(0) + Duration::from_secs(seconds)
    }

    #[test]
    fn each_client_says_once_a_minute_who_it_is() {
        let introductions = Introductions::default();
        let [one, other] = [(); 2].map(|()| ClientId::random(&SystemEntropy));
        for (client, seconds, is_due) in [
            (one, 10, true),
            (one, 11, false),
            (other, 40, true),
            (one, 69, false),
            (one, 70, true),
            (other, 99, false),
            (other, 100, true),
            (one, 129, false),
        ] {
            assert_eq!(
                introductions.is_due(client, at(seconds)),
                is_due,
                "{seconds}"
            );
        }
    }

    #[test]
    fn who_came_once_is_not_remembered_for_ever() {
        let introductions = Introductions::default();
        for minute in 0..100 {
            let client = ClientId::random(&SystemEntropy);
            assert!(introductions.is_due(client, at(60 * minute)));
        }
        assert_eq!(introductions.0.lock().unwrap().len(), 1);
    }
}
