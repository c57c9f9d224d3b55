//! A client that opens at its first use.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use leasehold::handle::Handle;
use leasehold::look::Pattern;
use leasehold::memory::MemoryStore;
use leasehold::store::Store;
use leasehold::{Client, Error, ErrorKind};
use leasehold_stores::AnyStore;

use crate::inspect::{
    BreakFields, Breaking, HolderFields, ListingFields, MemberFields, WaiterFields,
};
use crate::{BoxFuture, Held, locked, outcome_name};

/// A client that starts no thread and sends nothing before its first use, and opens again in a forked child. A program may
/// thus create it where it likes, and fork later.
///
/// The languages call it with their global lock held, so that no fork finds its mutex locked.
pub struct LazyClient {
    url: String,
    label: Option<String>,
    program: &'static str,
    state: Mutex<State>,
}

enum State {
    Unopened,
    Open(Client),
    /// Kept, so that another `close` waits for what ended meanwhile.
    Closed(Option<Client>),
}

/// The stores of `memory:name` in this process.
static MEMORY: LazyLock<Mutex<HashMap<String, MemoryStore>>> = LazyLock::new(Mutex::default);

impl LazyClient {
    /// Returns the client of the store at `url`, which `program` uses. Only checks the URL.
    ///
    /// `memory:` is a store of this client alone, and `memory:name` one that all clients of this process share: both are
    /// for tests.
    ///
    /// # Errors
    ///
    /// Those of [`AnyStore::parse`].
    pub fn new(url: String, label: Option<String>, program: &'static str) -> Result<Self, Error> {
        if memory_name(&url).is_none() {
            AnyStore::parse(&url)?;
        }
        Ok(Self {
            url,
            label,
            program,
            state: Mutex::new(State::Unopened),
        })
    }

    /// Returns the client, and opens it if this process has not.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] after [`close`](Self::close); a store that cannot be opened.
    pub fn get(&self) -> Result<Client, Error> {
        let mut state = locked(&self.state);
        match &*state {
            State::Open(client) if !client.is_forked() => return Ok(client.clone()),
            State::Closed(_) => {
                return Err(Error::new(ErrorKind::Closed, "this client was closed"));
            }
            _ => {}
        }
        let mut builder = Client::builder(self.store()?).program(self.program);
        if let Some(label) = &self.label {
            builder = builder.label(label);
        }
        let client = builder.build();
        // Drops the client of a parent process: it leaves everything alone in a child.
        *state = State::Open(client.clone());
        Ok(client)
    }

    fn store(&self) -> Result<Arc<dyn Store>, Error> {
        Ok(match memory_name(&self.url) {
            None => leasehold_stores::open(&self.url)?,
            Some("") => MemoryStore::new().into(),
            Some(name) => locked(&MEMORY)
                .entry(name.to_owned())
                .or_default()
                .clone()
                .into(),
        })
    }

    /// Returns the URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the label.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// Returns whether this process has opened the client and not closed it.
    pub fn is_open(&self) -> bool {
        matches!(&*locked(&self.state), State::Open(client) if !client.is_forked())
    }

    /// Returns whether this process has opened the client, closed or not.
    pub fn is_used(&self) -> bool {
        locked(&self.state).client().is_some()
    }

    /// Closes the client: ends its calls, releases its locks, and waits for the confirmations for at most `limit`. Returns
    /// the work, which is empty for a client that this process has not opened. It begins at the first poll.
    pub fn close(&self, limit: Duration) -> BoxFuture<()> {
        let mut state = locked(&self.state);
        let client = state.client();
        *state = State::Closed(client.clone());
        Box::pin(async move {
            match client {
                Some(client) => client.close(limit).await,
                None => Ok(()),
            }
        })
    }

    /// Prepares the store for its first lock, as `leasehold init` does, and blocks meanwhile. Returns whether it changed
    /// anything.
    ///
    /// # Errors
    ///
    /// Those of [`AnyStore::init`].
    pub fn init(&self) -> Result<bool, Error> {
        if memory_name(&self.url).is_some() {
            return Ok(false);
        }
        let store = AnyStore::parse(&self.url)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| {
            Error::new(ErrorKind::Io, "cannot start a runtime").with_source(error)
        })?;
        runtime.block_on(store.init())
    }
}

/// What a client shows of the store, and its handles. Each begins at the first poll.
impl LazyClient {
    /// # Errors
    ///
    /// Those of [`get`](Self::get), here and below.
    pub fn holders(&self, name: String) -> Result<BoxFuture<Vec<HolderFields>>, Error> {
        let client = self.get()?;
        Ok(Box::pin(async move {
            let holders = client.holders(name).await?;
            Ok(holders.iter().map(HolderFields::of).collect())
        }))
    }

    pub fn waiters(&self, name: String) -> Result<BoxFuture<Vec<WaiterFields>>, Error> {
        let client = self.get()?;
        Ok(Box::pin(async move {
            let waiters = client.waiters(name).await?;
            Ok(waiters.iter().map(WaiterFields::of).collect())
        }))
    }

    pub fn list_locks(
        &self,
        pattern: &str,
        limit: usize,
    ) -> Result<BoxFuture<ListingFields>, Error> {
        let (client, pattern) = (self.get()?, Pattern::new(pattern)?);
        Ok(Box::pin(async move {
            let listing = client.list_locks(&pattern, limit).await?;
            Ok(ListingFields::of(&listing))
        }))
    }

    pub fn health(&self) -> Result<BoxFuture<Vec<MemberFields>>, Error> {
        let client = self.get()?;
        Ok(Box::pin(async move {
            let members = client.health().await?;
            Ok(members.iter().map(MemberFields::of).collect())
        }))
    }

    pub fn break_lock(&self, breaking: Breaking) -> Result<BoxFuture<BreakFields>, Error> {
        let client = self.get()?;
        let (fence, how) = (breaking.fence()?, breaking.options()?);
        Ok(Box::pin(async move {
            let outcome = client.break_lock(breaking.name, fence, how).await?;
            Ok(BreakFields::of(&outcome))
        }))
    }

    /// Adopts the handle in `text`.
    pub fn adopt(&self, text: &str) -> Result<BoxFuture<Held>, Error> {
        let adopting = self.get()?.adopt(&text.parse::<Handle>()?);
        Ok(Box::pin(async move { adopting.await.map(Held::from) }))
    }

    /// Renews the lease of a handle, and returns its new text.
    pub fn renew_handle(&self, text: &str) -> Result<BoxFuture<String>, Error> {
        let renewing = self.get()?.renew(&text.parse::<Handle>()?);
        Ok(Box::pin(async move {
            renewing.await.map(|handle| handle.reveal())
        }))
    }

    /// Releases the lock of a handle, and returns the name of the outcome.
    pub fn release_handle(&self, text: &str) -> Result<BoxFuture<&'static str>, Error> {
        let releasing = self.get()?.release(&text.parse::<Handle>()?);
        Ok(Box::pin(async move { releasing.await.map(outcome_name) }))
    }
}

impl State {
    /// Returns the client of this process.
    fn client(&self) -> Option<Client> {
        let client = match self {
            Self::Unopened => None,
            Self::Open(client) => Some(client),
            Self::Closed(client) => client.as_ref(),
        };
        client.filter(|client| !client.is_forked()).cloned()
    }
}

fn memory_name(url: &str) -> Option<&str> {
    url.strip_prefix("memory:")
        .map(|name| name.trim_start_matches('/'))
}

impl fmt::Debug for LazyClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyClient")
            .field("is_open", &self.is_open())
            .finish_non_exhaustive()
    }
}
