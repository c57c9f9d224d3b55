//! The contract of stores, kept by one server and by five.

use std::fmt;
use std::future::ready;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::store::{
    AcquireError, BoxFuture, Busy, Grant, Guarantees, Held, LeaseTerms, LockRequest, Progress,
    ReleaseReply, RenewReply, Session, SessionContext, Store, Term, locked,
};
use leasehold::{Error, Fence, Key};
use leasehold_redis::{Password, RedisStore};
use leasehold_testkit::contract;
use leasehold_testkit::harness::{Harness, Login, LoginServer, ServerFault, Suite};
use leasehold_testkit::servers::{AppendFsync, RedisServer, RedisSet, Reply};

const SUITES: &[Suite] = &[
    Suite::new("redis", || Servers::start(1))
        .in_other_processes(open)
        .behind_proxies()
        .behind_a_login(Guarded::start),
    Suite::new("redis_quorum", || Servers::start(5))
        .in_other_processes(open)
        .behind_proxies(),
    Suite::new("redis_of_three", || Servers::start(3))
        .in_other_processes(open)
        .only_programs(),
    Suite::new("redis_forgetful", Servers::forgetful)
        .in_other_processes(open)
        .only_programs(),
];

/// What the first server suffers.
const FAULTS: &[ServerFault] = &[
    ServerFault::new("frozen"),
    ServerFault::new("restarted"),
    ServerFault::new("connections killed"),
    ServerFault::new("messages forged"),
];

/// What one of five members suffers while two others are frozen, so that locks are granted by a bare majority with it. When the
/// fault ends, the two and that member are a majority that may know of no holder.
const MEMORY_LOSSES: &[ServerFault] = &[
    ServerFault::new("data deleted").that_loses_leases(),
    ServerFault::new("power cut").that_loses_leases(),
    ServerFault::new("clock ahead").that_loses_leases(),
    ServerFault::new("clock behind").that_loses_leases(),
    ServerFault::new("durability switched off").that_loses_leases(),
];

/// How far the clock of a member is stepped.
const STEP: Duration = Duration::from_secs(3);

/// The longest TTL where members forget: they have no vote for that long.
const SHORT_MAX_TTL: Duration = Duration::from_secs(3);

const PASSWORD: &str = "contract-secret";

fn main() -> ExitCode {
    contract::main(SUITES)
}

#[derive(Debug)]
struct Servers {
    set: Arc<Mutex<RedisSet>>,
    faults: &'static [ServerFault],
    /// How much of the append-only file a power cut leaves.
    kept: Mutex<u64>,
}

impl Servers {
    fn start(count: usize) -> Arc<dyn Harness> {
        let settings = RedisServer::builder().password(PASSWORD).durable();
        let set = RedisSet::start_each(count, &settings);
        if count >= 3 {
            form(&set, None);
        }
        Arc::new(Self::of(set, FAULTS))
    }

    fn forgetful() -> Arc<dyn Harness> {
        let settings = RedisServer::builder()
            .password(PASSWORD)
            .append_only(AppendFsync::EverySecond)
            .steppable_clock();
        let set = RedisSet::start_each(5, &settings);
        form(&set, Some(SHORT_MAX_TTL));
        Arc::new(Self::of(set, MEMORY_LOSSES))
    }

    fn of(set: RedisSet, faults: &'static [ServerFault]) -> Self {
        Self {
            set: Arc::new(Mutex::new(set)),
            faults,
            kept: Mutex::default(),
        }
    }

    /// The members that are frozen while the first one suffers.
    fn freeze_two(&self, set: &RedisSet) {
        if self.faults == MEMORY_LOSSES {
            set.iter().skip(1).take(2).for_each(RedisServer::freeze);
        }
    }

    fn thaw_two(&self, set: &RedisSet) {
        if self.faults == MEMORY_LOSSES {
            set.iter().skip(1).take(2).for_each(RedisServer::thaw);
        }
    }
}

/// Returns the URLs of the servers, at other ports if there are proxies. The members of a quorum are known by their
/// names.
fn urls(ports: impl Iterator<Item = u16>) -> String {
    let url = |(number, port)| format!("redis://:{PASSWORD}@127.0.0.1:{port}?id=m{number}");
    ports.enumerate().map(url).collect::<Vec<_>>().join(",")
}

/// Returns the store of the servers at these addresses.
fn store(address: &str) -> RedisStore {
    let store = RedisStore::new(address.split(','));
    store.unwrap_or_else(|error| panic!("{error}"))
}

fn open(address: &str) -> Arc<dyn Store> {
    store(address).into()
}

/// One of the servers, as a client of another library uses it. A store of this one server would be refused,
/// since the server belongs to the quorum.
#[derive(Clone, Debug)]
struct SingleServer(Arc<Mutex<RedisSet>>, usize);

impl fmt::Display for SingleServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server {}", self.1)
    }
}

impl Store for SingleServer {
    fn guarantees(&self) -> Guarantees {
        store("redis://127.0.0.1").guarantees()
    }

    fn terms(&self) -> LeaseTerms {
        store("redis://127.0.0.1").terms()
    }

    fn open(&self, _: SessionContext) -> Arc<dyn Session> {
        Arc::new(self.clone())
    }
}

impl Session for SingleServer {
    fn acquire<'a>(
        &'a self,
        lock_request: &'a Arc<LockRequest>,
        _: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<Grant, AcquireError>> {
        let owner = lock_request.owner.to_string();
        let command = [
            "SET",
            lock_request.key.as_str(),
            &owner,
            "NX",
            "PX",
            "60000",
        ];
        let reply = locked(&self.0)[self.1].command(&command);
        let fence = Fence::new(1).expect("a fence");
        let answer = match reply {
            Reply::Status(_) => Ok(Grant::new(fence, minute())),
            _ => Err(AcquireError::Busy(Busy::default())),
        };
        Box::pin(ready(answer))
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<RenewReply>> {
        Box::pin(ready(
            leases
                .iter()
                .map(|_| RenewReply::Renewed(minute()))
                .collect(),
        ))
    }

    fn release<'a>(
        &'a self,
        lock_request: &'a Arc<LockRequest>,
    ) -> BoxFuture<'a, Result<ReleaseReply, Error>> {
        locked(&self.0)[self.1].command(&["DEL", lock_request.key.as_str()]);
        Box::pin(ready(Ok(ReleaseReply::Released)))
    }
}

/// The term of a lease that the server was just asked for.
fn minute() -> Term {
    Term::new(SystemClock.now(), Duration::from_secs(60))
}

/// Initializes the quorum. Servers that were just started would have no vote yet.
fn form(set: &RedisSet, max_ttl: Option<Duration>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    // The clients learn this limit, which is not their default.
    let store =
        store(&urls(set.iter().map(RedisServer::port))).clock_tolerance(Duration::from_millis(100));
    let store = match max_ttl {
        Some(max_ttl) => store.max_ttl(max_ttl),
        None => store,
    };
    let formed = runtime.block_on(store.init());
    formed.unwrap_or_else(|error| panic!("{error}"));
}

impl Harness for Servers {
    fn open(&self) -> Arc<dyn Store> {
        open(&self.address())
    }

    fn locations(&self) -> Vec<Arc<dyn Store>> {
        let place =
            |number| Arc::new(SingleServer(Arc::clone(&self.set), number)) as Arc<dyn Store>;
        (0..locked(&self.set).len()).map(place).collect()
    }

    fn forget(&self, key: &Key) {
        for server in locked(&self.set).iter() {
            let records = ["fence:0", "readers", "slots", "queue", "broken"];
            let records = records.map(|record| format!("leasehold:{record}:{{{key}}}:{key}"));
            let mut command = vec!["DEL", key.as_str()];
            command.extend(records.iter().map(String::as_str));
            server.command(&command);
        }
    }

    fn secrets(&self) -> Vec<String> {
        vec![PASSWORD.into()]
    }

    fn servers(&self) -> Vec<u16> {
        locked(&self.set).iter().map(RedisServer::port).collect()
    }

    fn address_through(&self, ports: &[u16]) -> String {
        urls(ports.iter().copied())
    }

    fn server_faults(&self) -> &[ServerFault] {
        self.faults
    }

    fn inject(&self, fault: &str) {
        let mut set = locked(&self.set);
        self.freeze_two(&set);
        let server = &mut set[0];
        match fault {
            "frozen" => server.freeze(),
            "restarted" => server.kill(),
            "connections killed" => {
                server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
                server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
            }
            "messages forged" => forge(server),
            "data deleted" => {}
            "power cut" => *locked(&self.kept) = server.appended(),
            "clock ahead" => server.clock().forward(STEP),
            "clock behind" => server.clock().back(STEP),
            "durability switched off" => {
                server.command(&["CONFIG", "SET", "appendonly", "no"]);
            }
            _ => unknown(fault),
        }
    }

    fn heal(&self, fault: &str) {
        let mut set = locked(&self.set);
        let server = &mut set[0];
        match fault {
            "frozen" => server.thaw(),
            // With "durability switched off" it loads the file from before the switch.
            "restarted" | "durability switched off" => server.restart(),
            "connections killed" => {}
            "messages forged" => forge(server),
            "data deleted" => drop(server.command(&["FLUSHALL"])),
            "power cut" => server.restart_after_power_cut(*locked(&self.kept)),
            "clock ahead" | "clock behind" => server.clock().set_right(),
            _ => unknown(fault),
        }
        self.thaw_two(&set);
    }

    fn leftovers(&self, prefix: &str) -> Vec<String> {
        let set = locked(&self.set);
        let keys = set.iter().flat_map(|server| {
            let keys = texts(&server.command(&["KEYS", &format!("*{prefix}*")]));
            keys.into_iter()
        });
        // The rest is kept for days.
        let passing = [
            "leasehold:queue:",
            "leasehold:readers:",
            "leasehold:slots:",
            prefix,
        ];
        keys.filter(|key| passing.iter().any(|kind| key.starts_with(kind)))
            .collect()
    }
}

/// Tells each client that it is the turn of each owner that holds a lock or waits for it.
fn forge(server: &RedisServer) {
    let list = |command: &[&str]| texts(&server.command(command));
    let mut messages = Vec::new();
    for key in list(&["KEYS", "p*"]) {
        for owner in list(&["GET", &key]) {
            messages.push(format!("turn {owner} {key}"));
        }
    }
    for queue in list(&["KEYS", "leasehold:queue:*"]) {
        let lock = queue.split_once("}:").map(|(_, lock)| lock.to_owned());
        for entry in list(&["ZRANGE", &queue, "0", "-1"]) {
            messages.push(format!("turn {entry} {}", lock.clone().unwrap_or_default()));
        }
    }
    for inbox in list(&["PUBSUB", "CHANNELS", "leasehold:inbox:*"]) {
        for message in &messages {
            server.command(&["PUBLISH", &inbox, message]);
        }
    }
}

fn texts(reply: &Reply) -> Vec<String> {
    match reply {
        Reply::Array(replies) => replies.iter().flat_map(texts).collect(),
        Reply::Bulk(text) => vec![text.clone()],
        _ => Vec::new(),
    }
}

fn unknown(fault: &str) -> ! {
    panic!("no fault is called {fault}")
}

/// A server that asks for a password.
#[derive(Debug)]
struct Guarded(RedisServer);

impl Guarded {
    fn start(password: &str) -> Box<dyn LoginServer> {
        let rules = format!("on >{password} ~* &* +@all");
        let server = RedisServer::builder()
            .password(PASSWORD)
            .acl(Login::USER, &rules);
        Box::new(Self(server.start()))
    }
}

impl LoginServer for Guarded {
    fn open(&self, login: &Login) -> Arc<dyn Store> {
        let url = format!("redis://127.0.0.1:{}", self.0.port());
        match login {
            Login::Function(password) => {
                let password = Arc::clone(password);
                let password = Password::from_fn(move || ready(Ok(password())));
                store(&url).login(Login::USER, password).into()
            }
            _ => open(&login.in_url(&url)),
        }
    }

    fn change_password(&self, password: &str) -> bool {
        let password = format!(">{password}");
        let changed = self
            .0
            .command(&["ACL", "SETUSER", Login::USER, "resetpass", &password]);
        assert_eq!(changed, Reply::Status("OK".into()));
        self.0.command(&["CLIENT", "KILL", "USER", Login::USER]);
        true
    }
}
