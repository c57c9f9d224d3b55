//! Users who may create in `public`, as all users may by default up to PostgreSQL 14.

use leasehold::Client;
use leasehold_postgres::{Initialized, PostgresStore};
use leasehold_testkit::servers::{PgBouncer, PostgresServer};

use crate::support::{LONG, client, is_free, server, store, taken};

/// Operators that fit `bigint * interval` and `numeric * integer` better than those of the system. They end each lease at once,
/// and copy a secret with the rights of the caller.
const MALLORY: &str = "
    create table secret as select 'the loot' as word;
    create role mallory login; grant create on schema public to mallory;
    create role locks login password 'x'; grant select on secret to locks;
    grant usage on schema leasehold to locks;
    grant select, insert, update, delete on all tables in schema leasehold to locks;
    grant execute on all functions in schema leasehold to locks;
    set role mallory;
    create table loot (word text); grant all on loot to public;
    create function evil(bigint, interval) returns interval language plpgsql as
        $$ begin insert into public.loot select word from public.secret; return '0'::interval; end $$;
    create function evil(numeric, integer) returns numeric language plpgsql as
        $$ begin insert into public.loot select word from public.secret; return 0; end $$;
    create operator public.* (leftarg = bigint, rightarg = interval, function = evil);
    create operator public.* (leftarg = numeric, rightarg = integer, function = evil);
    reset role;";

#[tokio::test]
async fn operators_of_others_end_no_lease() {
    let server = server().await;
    server.sql(MALLORY);
    let login = format!("tester:{}@", PostgresServer::PASSWORD);
    let locks = PostgresStore::new(server.url().replace(&login, "locks:x@"));
    let locks = Client::new(locks.expect("a URL"));
    let guard = taken(&locks, "job").await;
    let kept = "select until > clock_timestamp() + interval '50 s' from leasehold.lock;";
    assert_eq!(server.sql(kept), ["t"]);
    assert!(!is_free(&locks, "job").await.expect("an answer"));
    // A superuser looks, also without a client.
    let holders = client(&server).holders("job").await;
    assert_eq!(holders.expect("an answer").len(), 1);
    let by_hand = server.sql("select leasehold.micros(until) > 0 from leasehold.holder;");
    assert_eq!(by_hand, ["t"]);
    assert_eq!(server.sql("select count(*) from loot;"), ["0"]);
    guard.release().await.expect("a release");
}

/// The contract calls all other functions next to them.
#[tokio::test]
async fn other_functions_find_none_of_other_users() {
    let server = server().await;
    server.sql(include_str!("../hostile.sql"));
    server.sql("select leasehold.sweep();");
    let client = client(&server);
    let guard = taken(&client, "job").await;
    let mut session = server.session();
    session.run("set search_path = public, pg_catalog;");
    let check = format!("select leasehold.holds('job', {});", guard.fence());
    assert_eq!(session.run(&check), ["t"]);
    // A client that cannot keep its places waits as before, only later.
    server.sql("select leasehold.acquire('job', 'waits', 'client', 0, 1, 1, true, false);");
    let places = "select leasehold.keep_places('{job, job}', '{waits, gone}');";
    assert_eq!(server.sql(places), [" 2 -1"]);
    guard.release().await.expect("a release");
}

/// What the function `acquire` says in place of its answer if the session may find the names of others.
const PATH_IS_FIXED: &str = "create or replace function leasehold.acquire(p_name text, p_owner text, p_client text, p_mode integer, \
         p_ttl bigint, p_proposal bigint, p_waits boolean, p_barges boolean, p_ticket bigint default null) \
     returns text language plpgsql as $$ begin \
         if current_setting('search_path') <> 'pg_catalog,pg_temp' then raise exception 'another path'; end if; \
         return 'busy - - - -'; \
     end $$;";

#[tokio::test]
async fn sessions_have_a_fixed_search_path() {
    let server = server().await;
    server.sql(PATH_IS_FIXED);
    let url = server.url() + "?options=-c%20search_path%3Dpublic";
    let client = Client::new(PostgresStore::new(url).expect("a URL"));
    assert!(!is_free(&client, "job").await.expect("busy"));
}

#[tokio::test]
async fn sessions_behind_a_pooler_have_the_same_path() {
    let server = server().await;
    server.sql(PATH_IS_FIXED);
    let pooler = PgBouncer::start(&server, "session", "ignore_startup_parameters = options");
    let client = Client::new(PostgresStore::new(pooler.url()).expect("a URL"));
    assert!(!is_free(&client, "job").await.expect("busy"));
}

#[tokio::test]
async fn earlier_schema_is_upgraded_under_a_holder() {
    let server = server().await;
    let one = client(&server);
    let guard = one.lock("job").ttl(LONG).acquire().await.expect("the lock");
    server.sql(
        "drop view leasehold.holder; alter table leasehold.sharer drop column broken; \
         drop index leasehold.waiter_owner; alter table leasehold.waiter drop column heard; update leasehold.version set number = 1; \
         alter function leasehold.holds(text, bigint) reset all;",
    );
    let done = store(&server).init().await.expect("an upgrade");
    assert_eq!(done, Initialized::Upgraded(1));
    let fixed = "select proconfig from pg_proc where oid = 'leasehold.holds'::regproc;";
    assert_eq!(
        server.sql(fixed),
        [r#"{"search_path=pg_catalog, pg_temp"}"#]
    );
    assert!(!is_free(&client(&server), "job").await.expect("an answer"));
    guard.release().await.expect("a release");
}
