use std::fmt;
use std::time::Duration;

use futures_util::future::join_all;
use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::handle::Handle;
use serde_json::{Value, json};

use crate::options::defaults::Defaults;
use crate::output::failure::Failure;
use crate::runtime::runtime;
use crate::store::OpenStore;
use crate::store::addresses::{Addresses, Choice};

/// What the guardian needs to release the locks of a wrapper that was killed. It contains secrets, so it goes through
/// the control pipe, which no other process has open.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ReleaseOrder {
    pub(crate) urls: Vec<String>,
    /// The password for a server whose address has none.
    pub(crate) password: Option<String>,
    /// The locks, as the texts of their handles.
    pub(crate) handles: Vec<String>,
}

impl ReleaseOrder {
    /// The text on one line.
    pub(super) fn to_line(&self) -> String {
        let Self {
            urls,
            password,
            handles,
        } = self;
        json!({"urls": urls, "password": password, "handles": handles}).to_string()
    }

    pub(super) fn from_line(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let list = |name: &str| {
            let texts = value[name].as_array()?.iter();
            let texts = texts.map(|text| text.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<_>>>()
        };
        Some(Self {
            urls: list("urls")?,
            password: value["password"].as_str().map(str::to_owned),
            handles: list("handles")?,
        })
    }

    /// Releases the locks. Without an answer in time, their leases end by themselves.
    pub(super) fn carry_out(self) -> Result<(), Failure> {
        let store = OpenStore::open(&Choice::Stores(Addresses {
            urls: self.urls,
            source: "the wrapper".into(),
            defaults: Defaults::default(),
            password: self.password,
            warnings: Vec::new(),
        }))?;
        let client = store.client();
        let handles = self.handles.iter().filter_map(|text| text.parse().ok());
        let releases = handles.map(|handle: Handle| client.release(&handle));
        let limit = SystemClock.now() + RELEASE_MAX;
        let released = within(&SystemClock, limit, join_all(releases));
        drop(runtime()?.block_on(released));
        Ok(())
    }
}

impl fmt::Debug for ReleaseOrder {
    /// Shows no secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReleaseOrder").finish_non_exhaustive()
    }
}

/// How long the guardian tries.
const RELEASE_MAX: Duration = Duration::from_secs(10);
