use std::sync::Arc;
use std::time::Duration;

use super::Client;
use crate::acquire::LockOptions;
use crate::env::Env;
use crate::lease::{ClientContext, ClientCore};
use crate::runtime::background::Background;
use crate::store::Store;

/// Settings of a [`Client`].
#[derive(Debug)]
#[must_use]
pub struct ClientBuilder {
    store: Arc<dyn Store>,
    env: Env,
    identity: Identity,
    defaults: LockOptions,
    on_current_runtime: bool,
}

/// What people see of a client.
#[derive(Debug, Default)]
struct Identity {
    program: Option<String>,
    user: Option<String>,
    label: Option<String>,
    command: Option<String>,
}

impl ClientBuilder {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            env: Env::default(),
            identity: Identity::default(),
            defaults: LockOptions::default(),
            on_current_runtime: false,
        }
    }

    /// Sets the program name that people see when they inspect the client's locks. Default: the name of
    /// the executable.
    pub fn program(mut self, name: impl Into<String>) -> Self {
        self.identity.program = Some(name.into());
        self
    }

    /// Sets the user whom people see when they inspect the client's locks. Default: none. At most
    /// [`ClientInfo::LABEL_MAX`](crate::look::ClientInfo::LABEL_MAX) bytes are kept.
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.identity.user = Some(name.into());
        self
    }

    /// Sets a text that describes the client to people who inspect its locks. Default: none. At
    /// most [`ClientInfo::LABEL_MAX`](crate::look::ClientInfo::LABEL_MAX) bytes are kept.
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.identity.label = Some(text.into());
        self
    }

    /// Says what runs while the client holds its locks, usually a command line. Default: none: the
    /// library reads no command line, which may contain secrets. Every user of the store can read this
    /// text. At most [`ClientInfo::COMMAND_MAX`](crate::look::ClientInfo::COMMAND_MAX) bytes are kept.
    pub fn command(mut self, line: impl Into<String>) -> Self {
        self.identity.command = Some(line.into());
        self
    }

    /// Sets the TTL of all locks, elections, semaphores and `once` of this client that choose none. Default:
    /// 30 s, or the TTL next to it that the store allows.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use std::time::Duration;
    /// use leasehold::{Client, memory::MemoryStore};
    ///
    /// let locks = Client::builder(MemoryStore::new())
    ///     .ttl(Duration::from_secs(10))
    ///     .wait(Duration::from_millis(20))
    ///     .build();
    /// let guard = locks.lock("deploy").acquire().await?;
    /// assert!(guard.remaining() <= Duration::from_secs(10));
    /// let refused = locks.lock("deploy").acquire().await.unwrap_err();
    /// assert!(refused.is_busy());
    /// # drop(guard);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn ttl(mut self, ttl: Duration) -> Self {
        (self.defaults.ttl, self.defaults.is_default_ttl) = (ttl, false);
        self
    }

    /// Sets the longest wait of all calls of this client that choose none. Default: no limit. `try_acquire` does not
    /// wait, unless its lock has a wait of its own.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.defaults.wait = Some(wait);
        self
    }

    /// Sets the [lock delay](crate::Lock::lock_delay) of all locks of this client that choose none. Default: none.
    pub fn lock_delay(mut self, span: Duration) -> Self {
        self.defaults.lock_delay = span;
        self
    }

    /// Replaces the clock and the random numbers, for tests and simulations.
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// Runs everything on the calling tokio runtime instead of the client's own thread, for tests that
    /// control the time ([`manual::testing`](crate::manual::testing)). Renewals are late if that runtime is busy.
    pub fn on_current_runtime(mut self) -> Self {
        self.on_current_runtime = true;
        self
    }

    /// Starts the client. If its thread cannot be started, the first call reports that. The client
    /// registers its [metrics](crate::telemetry) now, so install a recorder before.
    ///
    /// # Panics
    ///
    /// If [`on_current_runtime`](Self::on_current_runtime) was called and the caller is outside a tokio
    /// runtime.
    pub fn build(self) -> Client {
        let background = if self.on_current_runtime {
            Ok(Background::borrow(tokio::runtime::Handle::current()))
        } else {
            Background::start()
        };
        let identity = self.identity;
        let info = self
            .env
            .this_process(identity.program)
            .with_user(identity.user.as_deref())
            .with_label(identity.label.as_deref())
            .with_command(identity.command.as_deref());
        let runtime = background.as_ref().ok();
        let runtime = runtime.map(|background| background.handle().clone());
        let context = ClientContext::new(self.store, self.env, info, runtime);
        Client {
            core: Arc::new(ClientCore::start(context, background)),
            defaults: self.defaults,
        }
    }
}
