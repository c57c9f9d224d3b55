use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::BootInstant;
use leasehold::look::{ClientId, ClientInfo};
use leasehold_quorum::Request;

use crate::codec::{extend_client_record, write_client_record};
use crate::resp::CommandWriter;

/// Tells a server which process the client is, for as long as the leases that the client takes.
///
/// The process that takes a lock writes the record. A process that only renews, by a handle, makes the
/// record live longer, so that it names the process that took the lock.
#[derive(Debug)]
pub(crate) struct Registration {
    client: Arc<ClientInfo>,
    /// Whether this process takes locks.
    takes_locks: bool,
    /// The longest TTL of a lease.
    longest: Duration,
    /// When the record was last written on this connection.
    written: Option<BootInstant>,
    /// The clients whose leases this process is about to renew, by their handles.
    others: Vec<ClientId>,
}

/// How often a client that uses locks writes the record.
const WRITTEN_EVERY: Duration = Duration::from_secs(60);

/// How much longer the record lives than a lease that begins when the record is written. A lease may begin
/// one [`WRITTEN_EVERY`] later; the rest is for slow requests.
const BEYOND_LEASE: Duration = Duration::from_secs(120);

/// The shortest life of the record. Most clients have shorter leases, and need not write it again when a
/// longer one comes.
const LIFE_MIN: Duration = Duration::from_secs(240);

impl Registration {
    pub(crate) fn new(client: Arc<ClientInfo>) -> Self {
        Self {
            client,
            takes_locks: false,
            longest: Duration::ZERO,
            written: None,
            others: Vec::new(),
        }
    }

    /// A new connection begins, perhaps to a server that has no record.
    pub(crate) fn connected(&mut self) {
        self.written = None;
    }

    /// Returns whether the record must be written before `request`, since the lease of the request could live
    /// longer than the record.
    pub(crate) fn is_due_for(&mut self, request: &Request, now: BootInstant) -> bool {
        let ttl = match request {
            Request::TryAcquire { lock_request, .. } | Request::Acquire { lock_request, .. } => {
                self.takes_locks = true;
                lock_request.ttl
            }
            Request::Renew(leases) => {
                let clients = leases.iter().map(|lease| lease.lock_request.owner.client());
                let own = self.client.id;
                self.others = clients.filter(|client| *client != own).collect();
                let ttls = leases.iter().map(|lease| lease.lock_request.ttl);
                ttls.max().unwrap_or_default()
            }
            _ => return false,
        };
        let mut is_short = false;
        if ttl > self.longest {
            let life = self.life();
            self.longest = ttl;
            is_short = self.life() > life;
        }
        is_short || self.written.is_none() || !self.others.is_empty() || self.is_due(now)
    }

    /// Returns whether the record must be written again.
    pub(crate) fn is_due(&self, now: BootInstant) -> bool {
        let is_old = |written: BootInstant| now.since(written) >= WRITTEN_EVERY;
        self.written.is_some_and(is_old)
    }

    pub(crate) fn write(&mut self, now: BootInstant, out: &mut CommandWriter<'_>) {
        self.written = Some(now);
        for other in std::mem::take(&mut self.others) {
            extend_client_record(other, self.life(), out);
        }
        match self.takes_locks {
            true => write_client_record(&self.client, self.life(), out),
            false => extend_client_record(self.client.id, self.life(), out),
        }
    }

    fn life(&self) -> Duration {
        LIFE_MIN.max(self.longest + BEYOND_LEASE)
    }
}

#[cfg(test)]
mod tests {
    use leasehold::clock::WallTime;
    use leasehold::env::{Env, SystemEntropy};
    use leasehold::look::Owner;
    use leasehold::store::LockRequest;
    use leasehold::{Fence, Key};
    use leasehold_quorum::Lease;

    use super::*;

    fn registration() -> Registration {
        let client = Env::default().this_process(None);
        Registration::new(Arc::new(client))
    }

    fn lock_request(registration: &Registration, seconds: u64) -> Arc<LockRequest> {
        let client = Arc::clone(&registration.client);
        let owner = Owner::random(client.id, &SystemEntropy);
        let (key, ttl) = (Key::new("x").unwrap(), Duration::from_secs(seconds));
        Arc::new(LockRequest::new(
            key,
            owner,
            ttl,
            WallTime::from_micros(7),
            client,
        ))
    }

    fn attempt(registration: &Registration, seconds: u64) -> Request {
        Request::TryAcquire {
            lock_request: lock_request(registration, seconds),
            proposal: 1,
            expire: false,
        }
    }

    fn renewal(registration: &Registration, seconds: u64) -> Request {
        Request::Renew(vec![Lease {
            lock_request: lock_request(registration, seconds),
            fence: Fence::MAX,
            slot: None,
        }])
    }

    /// What the client writes before the request: whether all fields, and for how many milliseconds.
    fn written(registration: &mut Registration, minute: u64, request: &Request) -> Option<String> {
        let now = BootInstant::from_nanos(0) + Duration::from_secs(60 * minute);
        if !registration.is_due_for(request, now) {
            return None;
        }
        let mut bytes = Vec::new();
        let mut writer = CommandWriter::new(&mut bytes);
        registration.write(now, &mut writer);
        writer.finish();
        let text = String::from_utf8(bytes).unwrap();
        let words = text.split("\r\n").filter(|it| !it.starts_with(['$', '*']));
        let words: Vec<&str> = words.collect();
        let life = words.iter().position(|word| *word == "PEXPIRE").unwrap() + 2;
        Some(format!(
            "{} {}",
            words[0],
            words[life..].join(" ").trim_end()
        ))
    }

    #[test]
    fn record_outlives_every_lease() {
        let mut client = registration();
        let mut written = |minute, seconds| {
            let request = attempt(&client, seconds);
            written(&mut client, minute, &request)
        };
        assert_eq!(written(0, 60).as_deref(), Some("HSET 240000"));
        assert_eq!(written(0, 120), None);
        assert_eq!(written(0, 1800).as_deref(), Some("HSET 1920000"));
        assert_eq!(written(0, 60), None);
        // A lease that begins later ends later.
        assert_eq!(written(1, 60).as_deref(), Some("HSET 1920000"));
    }

    #[test]
    fn renewal_by_handle_only_extends_the_record() {
        let mut client = registration();
        let request = renewal(&client, 1800);
        let said = written(&mut client, 0, &request);
        assert_eq!(said.as_deref(), Some("PEXPIRE 1920000 GT"));
        let request = attempt(&client, 60);
        written(&mut client, 1, &request);
        let request = renewal(&client, 1800);
        let said = written(&mut client, 2, &request);
        assert_eq!(said.as_deref(), Some("HSET 1920000"));
    }

    #[test]
    fn other_requests_need_no_record() {
        assert_eq!(written(&mut registration(), 9, &Request::Status), None);
    }
}
