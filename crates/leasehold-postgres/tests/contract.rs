//! The contract of stores, kept by a PostgreSQL server.

use std::future::ready;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use leasehold::Key;
use leasehold::store::{Store, locked};
use leasehold_postgres::{Password, PostgresStore};
use leasehold_testkit::contract;
use leasehold_testkit::harness::{Harness, Login, LoginServer, Optional, ServerFault, Suite};
use leasehold_testkit::servers::PostgresServer;

const SUITES: &[Suite] = &[Suite::new("postgres", Server::start)
    .in_other_processes(open)
    .behind_proxies()
    .behind_a_login(Guarded::start)
    .without(&[Optional::Health])];

const FAULTS: &[ServerFault] = &[
    ServerFault::new("frozen"),
    ServerFault::new("restarted"),
    ServerFault::new("connections killed"),
];

fn main() -> ExitCode {
    contract::main(SUITES)
}

fn open(url: &str) -> Arc<dyn Store> {
    let store = PostgresStore::new(url);
    store.unwrap_or_else(|error| panic!("{error}")).into()
}

#[derive(Debug)]
struct Server {
    server: Mutex<PostgresServer>,
}

/// Starts a server, and makes the tables.
fn started() -> PostgresServer {
    let server = PostgresServer::start();
    let store = PostgresStore::new(server.url()).expect("a URL");
    // A test may call this on a runtime of its own.
    let done = std::thread::scope(|scope| {
        let init = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(store.init())
        });
        init.join().expect("a thread")
    });
    done.unwrap_or_else(|error| panic!("{error}"));
    server
}

/// A server that asks for a password.
#[derive(Debug)]
struct Guarded(PostgresServer);

impl Guarded {
    fn start(password: &str) -> Box<dyn LoginServer> {
        let server = started();
        let user = Login::USER;
        server.sql(&format!(
            "create role {user} login superuser password '{password}';"
        ));
        Box::new(Self(server))
    }
}

impl LoginServer for Guarded {
    fn open(&self, login: &Login) -> Arc<dyn Store> {
        let own = format!("tester:{}@", PostgresServer::PASSWORD);
        let url = self.0.url().replace(&own, "");
        match login {
            Login::Function(password) => {
                let password = Arc::clone(password);
                let store = PostgresStore::new(&url).expect("a URL");
                let password = Password::from_fn(move || ready(Ok(password())));
                store.login(Login::USER, password).into()
            }
            _ => open(&login.in_url(&url)),
        }
    }

    fn change_password(&self, password: &str) -> bool {
        let user = Login::USER;
        self.0.sql(&format!(
            "alter role {user} password '{password}'; select pg_terminate_backend(pid) from pg_stat_activity \
             where usename = '{user}';"
        ));
        true
    }
}

impl Server {
    fn start() -> Arc<dyn Harness> {
        let server = started();
        server.sql(include_str!("hostile.sql"));
        let server = Mutex::new(server);
        Arc::new(Self { server })
    }
}

impl Harness for Server {
    fn open(&self) -> Arc<dyn Store> {
        open(&self.address())
    }

    fn forget(&self, key: &Key) {
        for table in ["lock", "sharer", "waiter", "ended", "break", "record"] {
            let sql = format!("delete from leasehold.{table} where name = $key${key}$key$;");
            locked(&self.server).sql(&sql);
        }
    }

    fn secrets(&self) -> Vec<String> {
        vec![PostgresServer::PASSWORD.into()]
    }

    fn servers(&self) -> Vec<u16> {
        vec![locked(&self.server).port()]
    }

    fn address_through(&self, ports: &[u16]) -> String {
        PostgresServer::url_at(ports[0])
    }

    fn server_faults(&self) -> &[ServerFault] {
        FAULTS
    }

    fn inject(&self, fault: &str) {
        let mut server = locked(&self.server);
        match fault {
            "frozen" => server.freeze(),
            "restarted" => server.kill(),
            "connections killed" => drop(server.sql(
                "select pg_terminate_backend(pid) from pg_stat_activity
                 where pid <> pg_backend_pid() and backend_type = 'client backend';",
            )),
            _ => panic!("no fault is called {fault}"),
        }
    }

    fn heal(&self, fault: &str) {
        let mut server = locked(&self.server);
        match fault {
            "frozen" => server.thaw(),
            "restarted" => server.restart(),
            _ => {}
        }
    }

    fn leftovers(&self, prefix: &str) -> Vec<String> {
        let rows = |table: &str, also: &str| {
            let like = format!("name like '{prefix}%' and until > clock_timestamp(){also}");
            locked(&self.server).sql(&format!(
                "select '{table}: ' || name from leasehold.{table} where {like};"
            ))
        };
        [
            rows("lock", " and owner is not null"),
            rows("sharer", ""),
            rows("waiter", ""),
        ]
        .concat()
    }
}
