use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold::store::{
    Exclusion, Expiry, Guarantees, LeaseTerms, Order, Session, SessionContext, Store, background,
};
use leasehold::{Error, ErrorKind, Fence, Key};
use leasehold_credentials::{Password, TlsFiles, TlsSource, rustls};
use tokio_postgres::GenericClient;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::Type;

use crate::connection::bounded::Heard;
use crate::connection::connect::Place;
use crate::connection::failure;
use crate::examine::Examination;
use crate::password_file::PasswordFile;
use crate::schema::{self, Initialized, sql_in};
use crate::session::PostgresSession;
use crate::session::requests::column;
use crate::url::Settings;

/// Locks on a PostgreSQL server, version 14 or later.
///
/// It serves waiters in the order of their arrival, and offers shared mode, permits, breaking, and records. Each client
/// opens two connections.
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> Result<(), leasehold::Error> {
/// use leasehold::Client;
/// use leasehold_postgres::PostgresStore;
///
/// let store = PostgresStore::new("postgres://locks:secret@db.example/app?sslmode=require")?;
/// let locks = Client::new(store);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct PostgresStore(Arc<Place>);

impl PostgresStore {
    /// Returns the store at `url`. Sends nothing.
    ///
    /// The form is `postgres://user:password@host:port/database`, and these parameters after `?`:
    ///
    /// | parameter | meaning |
    /// |---|---|
    /// | `schema` | the schema with the tables; `leasehold` by default |
    /// | `sslmode` | `disable` (the default), or `require`, which also checks certificate and name |
    /// | `ca` | a PEM file with authorities, in place of those of the machine |
    /// | `cert`, `key` | PEM files with the certificate of this client and its key |
    /// | `password_file` | a file with the password alone |
    /// | `passfile` | a file with passwords, in the form of libpq's `.pgpass` |
    ///
    /// The client reads the files again for each connection. Other parameters are those of libpq that `tokio-postgres` knows. With several hosts, the client uses the first that
    /// accepts writes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`], naming the part that is wrong.
    pub fn new(url: impl AsRef<str>) -> Result<Self, Error> {
        let settings = Settings::parse(url.as_ref())?;
        settings.check_files()?;
        Ok(Self(Arc::new(Place::new(settings))))
    }

    /// The version of the tables and functions that this crate uses.
    pub const SCHEMA_VERSION: i32 = schema::VERSION;

    /// Returns the store of the servers in `config`, with their login. Sends nothing.
    ///
    /// The connections are encrypted if its `ssl_mode` is [`Require`](tokio_postgres::config::SslMode::Require), and then the
    /// certificate of the server is checked too; [`tls_config`](Self::tls_config) sets other authorities than those of the
    /// machine. With several hosts, the client uses the first that accepts writes. The store adds settings of its own to the
    /// options of each session.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if `config` has no host, or asks for a server that refuses writes.
    ///
    /// # Examples
    ///
    /// ```
    /// use leasehold_postgres::PostgresStore;
    ///
    /// let mut config = tokio_postgres::Config::new();
    /// config.host("db.example").user("locks").password("secret").dbname("app");
    /// let store = PostgresStore::from_config(config)?;
    /// assert_eq!(store.to_string(), "postgres://db.example:5432/app");
    /// # Ok::<(), leasehold::Error>(())
    /// ```
    pub fn from_config(config: tokio_postgres::Config) -> Result<Self, Error> {
        let is_encrypted = config.get_ssl_mode() == SslMode::Require;
        let tls = is_encrypted.then(|| TlsFiles::default().into());
        let settings = Settings::of_config(config, tls).map_err(|rule| {
            Error::new(
                ErrorKind::InvalidInput,
                format!("PostgreSQL configuration: {rule}"),
            )
        })?;
        Ok(Self(Arc::new(Place::new(settings))))
    }

    /// The same store, which logs in as `user` with this password, in place of the login of the URL.
    /// [`Password::from_fn`] calls a function at each login, for example for the token of a cloud provider.
    ///
    /// # Examples
    ///
    /// ```
    /// use leasehold_postgres::{Password, PostgresStore};
    ///
    /// let store = PostgresStore::new("postgres://db.example/app?sslmode=require")?;
    /// let store = store.login("locks", Password::from_fn(|| async { Ok("a token".to_owned()) }));
    /// # Ok::<(), leasehold::Error>(())
    /// ```
    #[must_use]
    pub fn login(self, user: impl AsRef<str>, password: Password) -> Self {
        let mut settings = self.0.settings.clone();
        settings.config.user(user.as_ref());
        settings.password = Some(PasswordFile::Password(password));
        Self(Arc::new(Place::new(settings)))
    }

    /// The same store, which encrypts with this configuration in place of the files that the URL names.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] without `sslmode=require`.
    pub fn tls_config(self, config: Arc<rustls::ClientConfig>) -> Result<Self, Error> {
        let mut settings = self.0.settings.clone();
        TlsSource::replace(&mut settings.tls, config, "sslmode=require")?;
        Ok(Self(Arc::new(Place::new(settings))))
    }

    /// The same store, which logs in with this password unless the URL has one.
    #[must_use]
    pub fn default_password(self, password: impl AsRef<[u8]>) -> Self {
        let mut settings = self.0.settings.clone();
        if settings.config.get_password().is_none() {
            settings.config.password(password);
        }
        Self(Arc::new(Place::new(settings)))
    }

    /// Creates the tables and functions, or brings them to this version. Does nothing if they are of this version. Several
    /// processes may call it at once.
    ///
    /// The user becomes the owner of the schema. It needs the right to create schemas in the database, or to create tables
    /// in a schema that exists.
    ///
    /// # Errors
    ///
    /// A server that does not answer or lacks rights; a schema of a later version.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: the server makes the change as a whole, or not at all. Must be polled in a tokio runtime.
    pub async fn init(&self) -> Result<Initialized, Error> {
        let done = async {
            let (mut client, driver) = self.0.connect(&Heard::default()).await?;
            background::spawn(driver.run());
            schema::init(&mut client, &self.0.settings.schema).await
        };
        done.await.map_err(|error| self.named(error))
    }

    /// Examines the server and its database for an operator, within `limit`. Changes nothing.
    ///
    /// # Errors
    ///
    /// A server that does not answer, or that refuses the login.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. Must be polled in a tokio runtime.
    pub async fn examine(&self, limit: Duration) -> Result<Examination, Error> {
        let done = crate::examine::examine(&self.0, limit);
        done.await.map_err(|error| self.named(error))
    }

    /// Returns whether the holder with `fence` still holds the lock `key`, and keeps it so until the transaction ends.
    ///
    /// Call it in the transaction of the work, with `true` as the condition of its commit. Another client gets the lock
    /// only after the transaction has ended, even if the lease ends before. So a holder that was paused cannot commit once
    /// the lock has passed on. The client can renew the lease meanwhile.
    ///
    /// The database must be the one with the locks. Programs in other languages call
    /// `select leasehold.holds(name, fence)`.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(
    /// #     store: leasehold_postgres::PostgresStore, guard: leasehold::Guard, database: &mut tokio_postgres::Client,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let transaction = database.transaction().await?;
    /// if !store.holds(&transaction, guard.key(), guard.fence()).await? {
    ///     return Err("another client has the lock".into());
    /// }
    /// transaction.execute("update invoice set total = 7 where id = 1", &[]).await?;
    /// transaction.commit().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The server does not answer, or refuses. In a transaction that is repeatable read or serializable, a lock that was
    /// released since it began is the error 40001, and the transaction is aborted.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, roll the transaction back.
    pub async fn holds(
        &self,
        transaction: &impl GenericClient,
        key: &Key,
        fence: Fence,
    ) -> Result<bool, Error> {
        let sql = sql_in(&self.0.settings.schema, "select leasehold.holds($1, $2)");
        let (key, fence) = (key.as_str(), i64::try_from(fence).unwrap_or(i64::MAX));
        let rows = transaction
            .query_typed(&sql, &[(&key, Type::TEXT), (&fence, Type::INT8)])
            .await
            .map_err(|error| self.named(failure::of_request(error)))?;
        let row = rows
            .first()
            .ok_or_else(|| Error::new(ErrorKind::InvalidResponse, "no row"));
        column(row?, 0)
    }

    fn named(&self, error: Error) -> Error {
        error.with_store(self.to_string())
    }
}

impl Store for PostgresStore {
    fn guarantees(&self) -> Guarantees {
        Guarantees::new(Exclusion::OneServer, Expiry::Lease, Order::Fifo)
            .with_shared()
            .with_permits()
    }

    fn terms(&self) -> LeaseTerms {
        LeaseTerms::single()
    }

    fn open(&self, context: SessionContext) -> Arc<dyn Session> {
        Arc::new(PostgresSession::new(&self.0, context))
    }
}

/// The servers, the database and the schema, without credentials.
impl fmt::Display for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.settings.fmt(f)
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresStore")
            .field(&self.to_string())
            .finish()
    }
}

impl From<PostgresStore> for Arc<dyn Store> {
    fn from(store: PostgresStore) -> Self {
        Arc::new(store)
    }
}
