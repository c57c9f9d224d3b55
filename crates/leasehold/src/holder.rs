use std::fmt;
use std::time::Duration;

use crate::ambient::Ambient;
use crate::claim::Mode;
use crate::clock::WallTime;
use crate::fence::Fence;
use crate::owner::{ClientId, Owner};

/// Who a client is, written beside the locks it holds so that people can find it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientInfo {
    /// The client's random identity; every [`Owner`] it draws begins with it.
    pub id: ClientId,
    /// The name of its machine.
    pub host: String,
    /// Its process id on that machine.
    pub pid: u32,
    /// The name of its program.
    pub program: String,
    /// When it started, by its own wall clock.
    pub since: WallTime,
}

impl ClientInfo {
    /// Describes a client called `id`: for stores that read what another process wrote.
    pub fn new(id: ClientId, host: String, pid: u32, program: String, since: WallTime) -> Self {
        Self {
            id,
            host,
            pid,
            program,
            since,
        }
    }

    /// Describes a new client in the calling process. `program` defaults to the executable's name.
    pub fn of_this_process(ambient: &Ambient, program: Option<String>) -> Self {
        let host = nix::unistd::gethostname().map_or_else(
            |_| "unknown".into(),
            |name| name.to_string_lossy().into_owned(),
        );
        let executable = || {
            let path = std::env::current_exe().ok()?;
            Some(path.file_name()?.to_string_lossy().into_owned())
        };
        Self {
            id: ClientId::random(&*ambient.entropy),
            host,
            pid: std::process::id(),
            program: program
                .or_else(executable)
                .unwrap_or_else(|| "unknown".into()),
            since: ambient.clock.wall(),
        }
    }
}

impl fmt::Display for ClientInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {} on {})", self.program, self.pid, self.host)
    }
}

/// One holder of a lock, as far as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// Alone or shared.
    pub mode: Mode,
    /// The attempt that was granted; `None` if another library holds the lock.
    pub owner: Option<Owner>,
    /// Who it is; `None` if it never said, or if another library holds the lock.
    pub client: Option<ClientInfo>,
    /// The fence it was granted, where the store keeps it.
    pub fence: Option<Fence>,
    /// When it was granted the lock, by the wall clock of the holder.
    pub since: Option<WallTime>,
    /// How long its lease still lives unless renewed; `None` where it has no end.
    pub remaining: Option<Duration>,
    /// What the value under the lock's name looks like, where another library wrote it.
    pub form: Option<&'static str>,
    /// An operator broke the lease: its holder has no lock any more, and learns of it with its next
    /// renewal. Until the lease would have ended the lock stays shut.
    pub broken: bool,
}

impl Holder {
    /// The holder that `owner` became in this mode.
    pub fn of(owner: Owner, mode: Mode) -> Self {
        Self {
            owner: Some(owner),
            since: Some(owner.since()),
            ..Self::unknown(mode)
        }
    }

    /// An owner names the instant at which its wait began. Its fence is the time of its grant, unless another
    /// client's clock is ahead; a fence that is much later than the wait began says nothing.
    pub(crate) fn count_from_grant(&mut self) {
        let (Some(since), Some(fence)) = (self.since, self.fence) else {
            return;
        };
        let granted = WallTime::from_micros(fence.get());
        let is_plausible = granted.distance(since) < Self::WAIT_MAX;
        if granted.as_micros() > since.as_micros() && is_plausible {
            self.since = Some(granted);
        }
    }

    /// The longest wait whose end is read from a fence.
    const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

    /// A holder of which nothing but its mode is known yet.
    pub fn unknown(mode: Mode) -> Self {
        Self {
            mode,
            owner: None,
            client: None,
            fence: None,
            since: None,
            remaining: None,
            form: None,
            broken: false,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.client, self.owner) {
            (Some(client), _) => client.fmt(f),
            (None, Some(owner)) => write!(f, "client {}", owner.client()),
            (None, None) => f.write_str("a client of another library"),
        }
    }
}
