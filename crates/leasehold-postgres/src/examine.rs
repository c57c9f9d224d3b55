//! What an operator should know about a server.

use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::store::{background, exact_span};
use leasehold::{Error, ErrorKind};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use crate::connection::bounded::Heard;
use crate::connection::connect::Place;
use crate::connection::{failure, pooler};
use crate::schema::{self, sql_in};

/// What a server says about itself, its database, and this user.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Examination {
    /// The user of the connection.
    pub user: String,
    /// Whether the connection is encrypted.
    pub is_encrypted: bool,
    /// Whether the connection stays on this machine.
    pub is_local: bool,
    /// The version of the server, such as `15.18`.
    pub version: String,
    /// The same as a number, such as 150018.
    pub version_number: i32,
    /// The schema with the tables.
    pub schema: String,
    /// The version of the schema; `None` if there is none.
    pub schema_version: Option<i32>,
    /// The version of the schema that this client needs.
    pub wanted_version: i32,
    /// Whether the server is a standby, which accepts no writes.
    pub is_standby: bool,
    /// Whether sessions of this user may only read, for example because an administrator set
    /// `default_transaction_read_only`. A standby is read-only, too.
    pub is_read_only: bool,
    /// The encoding of the database. One in another encoding than `UTF8` cannot store all names.
    pub encoding: String,
    /// The server's setting `fsync`. Without it, a crash of the machine can lose or damage what was acknowledged.
    pub fsync: bool,
    /// The setting `synchronous_commit` of a session of the store.
    pub synchronous_commit: String,
    /// The setting `synchronous_standby_names`; empty if commits wait for no standby.
    pub synchronous_standbys: String,
    /// The number of standbys that follow the server.
    pub standbys: i64,
    /// Whether the session belongs to the client, and has the settings that it asked for. A connection pooler in transaction
    /// mode shares its sessions.
    pub has_session_settings: bool,
    /// How many more connections this user may open, and the most that the server accepts.
    pub connections_left: (i64, i64),
    /// The statements that give the user what it lacks.
    pub missing_grants: Vec<String>,
    /// How far the clock of the server is ahead of this machine's, in microseconds.
    pub clock_offset: i64,
    /// How long each of a few trivial requests took.
    pub round_trips: Vec<Duration>,
    /// The number of rows of locks that were used in the last week or are held, by the server's estimate.
    pub locks: i64,
}

impl Examination {
    /// Returns whether the database can store every name and every label of a client.
    pub fn stores_all_names(&self) -> bool {
        // SQL_ASCII stores bytes as they are.
        matches!(self.encoding.as_str(), "UTF8" | "SQL_ASCII")
    }

    /// Returns what a server that is well says, for tests of programs that judge it.
    #[doc(hidden)]
    pub fn example() -> Self {
        Self {
            user: "ann".into(),
            is_encrypted: true,
            is_local: false,
            version: "15.18".into(),
            version_number: 150_018,
            schema: "leasehold".into(),
            schema_version: Some(schema::VERSION),
            wanted_version: schema::VERSION,
            is_standby: false,
            is_read_only: false,
            encoding: "UTF8".into(),
            fsync: true,
            synchronous_commit: "on".into(),
            synchronous_standbys: "*".into(),
            standbys: 1,
            has_session_settings: true,
            connections_left: (90, 100),
            missing_grants: Vec::new(),
            clock_offset: 200,
            round_trips: vec![Duration::from_micros(300); ROUND_TRIPS],
            locks: 7,
        }
    }
}

/// Nothing but the estimate of rows needs a right.
const FACTS: &str = "select current_user::text, coalesce((select s.ssl from pg_stat_ssl s where s.pid = pg_backend_pid()), false), \
     current_setting('server_version'), current_setting('server_version_num')::int, pg_is_in_recovery(), \
     current_setting('fsync')::bool, current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), \
     (select count(*) from pg_stat_replication), coalesce(current_setting('leasehold_client.session', true) = 'on', false), \
     current_setting('max_connections')::bigint, \
     current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint \
         - (select count(*) from pg_stat_activity where backend_type = 'client backend'), \
     coalesce((select c.reltuples::bigint from pg_class c join pg_namespace n on n.oid = c.relnamespace \
         where n.nspname = $1 and c.relname = 'lock'), 0), \
     current_setting('transaction_read_only')::bool, current_setting('server_encoding')";

/// Whether this user may use the schema, all its tables, and all its functions.
const RIGHTS: &str = "select has_schema_privilege($1, 'usage'), \
     (select coalesce(bool_and(has_table_privilege(c.oid, p)), true) from pg_class c, \
         unnest(array['select', 'insert', 'update', 'delete']) p \
         where c.relnamespace = (select oid from pg_namespace where nspname = $1) and c.relkind in ('r', 'v') \
         and (c.relkind = 'r' or p = 'select')), \
     (select coalesce(bool_and(has_function_privilege(f.oid, 'execute')), true) from pg_proc f \
         where f.pronamespace = (select oid from pg_namespace where nspname = $1))";

const ROUND_TRIPS: usize = 5;

/// Examines the server within `limit`. Changes nothing.
pub(crate) async fn examine(place: &Arc<Place>, limit: Duration) -> Result<Examination, Error> {
    let silent = |what: &str| {
        let text = format!("{what} within {}", exact_span(limit));
        Error::new(ErrorKind::Unreachable, text)
    };
    let end = SystemClock.now() + limit;
    let connected = within(&SystemClock, end, place.connect(&Heard::default())).await;
    let (client, driver) = connected.ok_or_else(|| silent("no connection"))??;
    background::spawn(driver.run());
    let found = within(&SystemClock, end, facts(place, &client)).await;
    let found = found.ok_or_else(|| silent("the server accepts the login, and does not answer"))?;
    found.map_err(failure::of_request)
}

async fn facts(place: &Arc<Place>, client: &Client) -> Result<Examination, tokio_postgres::Error> {
    let settings = &place.settings;
    let schema = settings.schema.as_str();
    let parameter: &[(&(dyn tokio_postgres::types::ToSql + Sync), Type)] = &[(&schema, Type::TEXT)];
    let schema_version = version(client, schema).await?;
    let begin = format!("begin; {}", schema::pinned());
    client.batch_execute(&begin).await?;
    let row = client.query_typed_one(FACTS, parameter).await?;
    let exists = "select 1 from pg_namespace where nspname = $1";
    let exists = client.query_typed_opt(exists, parameter).await?.is_some();
    let missing_grants = match exists {
        true => {
            let rights = client.query_typed_one(RIGHTS, parameter).await?;
            missing_grants(&rights, schema, row.try_get(0)?)?
        }
        false => Vec::new(),
    };
    let (clock_offset, round_trips) = clock(client).await?;
    client.batch_execute("commit").await?;
    Ok(Examination {
        user: row.try_get(0)?,
        is_encrypted: row.try_get(1)?,
        is_local: settings.is_local(),
        version: row.try_get(2)?,
        version_number: row.try_get(3)?,
        schema: settings.schema.clone(),
        schema_version,
        wanted_version: schema::VERSION,
        is_standby: row.try_get(4)?,
        is_read_only: row.try_get(13)?,
        encoding: row.try_get(14)?,
        fsync: row.try_get(5)?,
        synchronous_commit: row.try_get(6)?,
        synchronous_standbys: row.try_get(7)?,
        standbys: row.try_get(8)?,
        has_session_settings: row.try_get(9)?
            || pooler::take_over(place, client, &SystemClock).await.is_ok(),
        connections_left: (row.try_get(11)?, row.try_get(10)?),
        missing_grants,
        clock_offset,
        round_trips,
        locks: row.try_get::<_, i64>(12)?.max(0),
    })
}

/// The version of the schema, where this user may read it.
async fn version(client: &Client, schema: &str) -> Result<Option<i32>, tokio_postgres::Error> {
    let read = sql_in(schema, schema::READ_VERSION);
    match client.query_typed_opt(&read, &[]).await {
        Ok(row) => row.map(|row| row.try_get(0)).transpose(),
        Err(error) if error.as_db_error().is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

fn missing_grants(
    rights: &Row,
    schema: &str,
    user: &str,
) -> Result<Vec<String>, tokio_postgres::Error> {
    let user = user.replace('"', "\"\"");
    let grants = [
        format!("GRANT USAGE ON SCHEMA \"{schema}\" TO \"{user}\""),
        format!(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \"{schema}\" TO \"{user}\""
        ),
        format!("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA \"{schema}\" TO \"{user}\""),
    ];
    let mut missing = Vec::new();
    for (number, grant) in grants.into_iter().enumerate() {
        if !rights.try_get::<_, bool>(number)? {
            missing.push(grant);
        }
    }
    Ok(missing)
}

/// How far the server's clock is ahead, by the fastest of a few requests, and how long each took.
async fn clock(client: &Client) -> Result<(i64, Vec<Duration>), tokio_postgres::Error> {
    let (mut best, mut offset, mut spans) = (Duration::MAX, 0, Vec::new());
    for _ in 0..ROUND_TRIPS {
        let read = "select (extract(epoch from clock_timestamp()) * 1000000)::bigint";
        let (began, wall) = (SystemClock.now(), SystemClock.wall());
        let row = client.query_typed_one(read, &[]).await?;
        let took = SystemClock.now().since(began);
        spans.push(took);
        if took < best {
            best = took;
            let ours = i64::try_from(wall.as_micros()).unwrap_or(i64::MAX);
            let half = i64::try_from(took.as_micros() / 2).unwrap_or(i64::MAX);
            offset = row.try_get::<_, i64>(0)? - ours - half;
        }
    }
    spans.sort_unstable();
    Ok((offset, spans))
}
