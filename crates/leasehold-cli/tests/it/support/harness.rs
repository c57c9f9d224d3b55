use std::ffi::OsString;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use leasehold_testkit::reset_ignored_signals;
use leasehold_testkit::servers::{
    EtcdServer, PostgresServer, RedisServer, RedisSet, Zookeeper, until,
};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;

use crate::support::program::{Arguments, Ended, Running, read, sh};

/// The folder of a test, for files and as the user's home, and the store that its programs use.
pub(crate) struct Sandbox {
    dir: TempDir,
    store: String,
    started: AtomicU32,
}

impl Sandbox {
    /// A sandbox with lock files.
    pub(crate) fn new() -> Self {
        reset_ignored_signals();
        let dir = TempDir::with_prefix("leasehold-cli-").unwrap();
        Self {
            store: format!("file://{}", dir.path().join("locks").display()),
            dir,
            started: AtomicU32::new(0),
        }
    }

    /// A sandbox with these Redis servers.
    pub(crate) fn on(urls: &[String]) -> Self {
        Self {
            store: urls.join(","),
            ..Self::new()
        }
    }

    /// A sandbox with a new Redis server.
    pub(crate) fn on_redis() -> (Self, RedisServer) {
        let server = RedisServer::start();
        (Self::on(&[server.url()]), server)
    }

    /// A sandbox with a new PostgreSQL server, which has the schema.
    pub(crate) fn on_postgres() -> (Self, PostgresServer) {
        let server = PostgresServer::start();
        let sandbox = Self::on(&[server.url()]);
        sandbox.run("init").fails(0, &[]);
        (sandbox, server)
    }

    /// A sandbox with a new etcd server.
    pub(crate) fn on_etcd() -> (Self, EtcdServer) {
        let server = EtcdServer::start();
        let url = format!("etcd://127.0.0.1:{}", server.port());
        (Self::on(&[url]), server)
    }

    /// A sandbox with new ZooKeeper servers.
    pub(crate) fn on_zookeeper(count: usize) -> (Self, Zookeeper) {
        let servers = Zookeeper::builder().members(count).start();
        (Self::on(&[servers.url() + "/locks"]), servers)
    }

    /// A sandbox with a new, initialized quorum. Without initialization, new servers have no vote yet.
    pub(crate) fn on_quorum(count: usize) -> (Self, RedisSet) {
        Self::on_initialized(RedisSet::start(count), "")
    }

    /// The same, with durable servers.
    pub(crate) fn on_durable_quorum(count: usize) -> (Self, RedisSet) {
        let settings = RedisServer::builder().durable();
        Self::on_initialized(RedisSet::start_each(count, &settings), "")
    }

    /// A sandbox with these servers, which `leasehold init` with `options` makes a quorum.
    pub(crate) fn on_initialized(servers: RedisSet, options: &str) -> (Self, RedisSet) {
        let sandbox = Self::on(&servers.urls());
        sandbox.run(&format!("init {options}")).succeeds();
        (sandbox, servers)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn store(&self) -> &str {
        &self.store
    }

    /// The program, with only the sandbox's variables in its environment.
    pub(crate) fn leasehold(&self) -> Command {
        let mut command = self.without_store();
        command.env("LEASEHOLD_STORE", &self.store);
        command
    }

    /// The same, with no store configured.
    pub(crate) fn without_store(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        self.furnish(&mut command);
        command
    }

    /// Runs `leasehold` with `args`, these variables, and no store configured, to its end.
    #[track_caller]
    pub(crate) fn run_without_store<A: Arguments + ?Sized>(
        &self,
        variables: &[(&str, &str)],
        args: &A,
    ) -> Ended {
        let mut command = self.without_store();
        command.envs(variables.iter().copied()).args(args.list());
        self.spawn(command).wait()
    }

    /// Runs `script` in a shell that has the store in its environment.
    pub(crate) fn shell(&self, script: &str) -> Running {
        let mut command = Command::new("sh");
        self.furnish(&mut command);
        command.env("LEASEHOLD_STORE", &self.store);
        command.args(["-c", script]);
        self.spawn(command)
    }

    /// Gives `command` the sandbox's environment and no stdin.
    pub(crate) fn furnish(&self, command: &mut Command) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.path("home"))
            .envs(coverage())
            .env("LEASEHOLD", PROGRAM)
            .current_dir(self.dir.path())
            .stdin(Stdio::null());
    }

    /// Runs `leasehold` with `args` to its end.
    #[track_caller]
    pub(crate) fn run<A: Arguments + ?Sized>(&self, args: &A) -> Ended {
        self.start(args).wait()
    }

    /// Starts `leasehold` with `args`.
    pub(crate) fn start<A: Arguments + ?Sized>(&self, args: &A) -> Running {
        let mut command = self.leasehold();
        command.args(args.list());
        self.spawn(command)
    }

    /// Runs `leasehold` with `args`, which finds the lock busy, until it names the holder with these `parts`. It does not
    /// wait long for a slow store to name the holder.
    #[track_caller]
    pub(crate) fn until_named(&self, args: &str, parts: &[&str]) {
        until(&format!("{parts:?} in the answer to {args}"), || {
            let busy = self.run(args);
            assert_eq!(busy.code(), 75, "{busy:?}");
            parts.iter().all(|part| busy.stderr.contains(part))
        });
    }

    /// Runs `leasehold` with `args` on other servers.
    #[track_caller]
    pub(crate) fn run_at<A: Arguments + ?Sized>(&self, urls: &[String], args: &A) -> Ended {
        self.start_at(urls, args).wait()
    }

    pub(crate) fn start_at<A: Arguments + ?Sized>(&self, urls: &[String], args: &A) -> Running {
        self.start_with(("LEASEHOLD_STORE", &urls.join(",")), args)
    }

    /// Starts `leasehold` with `args` and another variable in its environment.
    pub(crate) fn start_with<A: Arguments + ?Sized>(
        &self,
        (variable, value): (&str, &str),
        args: &A,
    ) -> Running {
        let mut command = self.leasehold();
        command.env(variable, value).args(args.list());
        self.spawn(command)
    }

    /// Starts `leasehold run` with `args` and a command that runs until [`let_go`](Self::let_go). Returns once the
    /// command has written its process id to the file `name`.
    pub(crate) fn hold(&self, args: &str, name: &str) -> Running {
        let script = format!(
            "echo $LEASEHOLD_FENCE > {name}-fence; echo $$ > {name}
            while [ ! -e go ]; do sleep 0.02; done; echo done > first"
        );
        let holder = self.start(&sh(&format!("run {args}"), &script));
        self.pid_in(name);
        holder
    }

    /// The fence of the command that [`hold`](Self::hold) started with the file `name`.
    pub(crate) fn fence(&self, name: &str) -> u64 {
        self.line_in(&format!("{name}-fence")).parse().unwrap()
    }

    /// Ends the command of a holder that [`hold`](Self::hold) started, and waits for the holder to succeed.
    #[track_caller]
    pub(crate) fn finish(&self, holder: Running) {
        self.let_go();
        holder.wait().succeeds();
    }

    pub(crate) fn let_go(&self) {
        fs::write(self.path("go"), "").unwrap();
    }

    /// Starts `command` with its output in files of the sandbox.
    pub(crate) fn spawn(&self, command: Command) -> Running {
        self.spawn_named(command).0
    }

    /// The same, with the name of the file that has its stdout.
    pub(crate) fn spawn_named(&self, mut command: Command) -> (Running, String) {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let name = format!("stdout-{number}");
        let stdout = self.path(&name);
        let stderr = self.path(&format!("stderr-{number}"));
        let child = command
            .stdout(File::create(&stdout).unwrap())
            .stderr(File::create(&stderr).unwrap())
            .spawn()
            .unwrap();
        (Running::new(child, stdout, stderr), name)
    }

    /// Waits until the file `name` holds a whole line, and returns it.
    #[track_caller]
    pub(crate) fn line_in(&self, name: &str) -> String {
        let path = self.path(name);
        let mut text = String::new();
        until(&format!("a line in {name}"), || {
            text = fs::read_to_string(&path).unwrap_or_default();
            text.ends_with('\n')
        });
        text.trim_end().to_owned()
    }

    /// The lines that the file `name` holds by now.
    pub(crate) fn lines_in(&self, name: &str) -> Vec<String> {
        read(&self.path(name)).lines().map(Into::into).collect()
    }

    /// What the file `name` holds by now, without the end of its last line.
    pub(crate) fn line_in_if_any(&self, name: &str) -> String {
        read(&self.path(name)).trim_end().to_owned()
    }

    /// Waits until a process wrote its id to the file `name`, and returns it.
    #[track_caller]
    pub(crate) fn pid_in(&self, name: &str) -> i32 {
        self.line_in(name).parse().unwrap()
    }

    /// Makes a gate: a command that reads a line from the file `name` waits there until the gate is
    /// opened. Unlike a loop around `sleep` it starts no processes, so it can be stopped at any time. A
    /// shell that is starting a process stops only when that process runs (vfork).
    pub(crate) fn gate(&self, name: &str) {
        mkfifo(&self.path(name), Mode::S_IRWXU).unwrap();
    }

    /// Opens the gate for a command that waits there now or later.
    pub(crate) fn open_gate(&self, name: &str) {
        fs::write(self.path(name), "\n").unwrap();
    }

    /// Whether `lock` is free according to `status`.
    pub(crate) fn is_free(&self, lock: &str) -> bool {
        let status = self.run(&format!("status {lock}"));
        assert_eq!(status.code(), 0, "{}", status.stderr);
        status.stdout == format!("{lock}: free\n")
    }
}

/// The variable with the file in which an instrumented program counts what it runs.
fn coverage() -> Option<(&'static str, OsString)> {
    const FILE: &str = "LLVM_PROFILE_FILE";
    std::env::var_os(FILE).map(|file| (FILE, file))
}

/// The name of `server` as a member.
pub(crate) fn id(server: &RedisServer) -> String {
    format!("127.0.0.1:{}", server.port())
}

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_leasehold");

/// A command that notes each INT and USR1 it receives in `got`, and ends on USR2.
pub(crate) const COUNTER: &str = "
    trap 'echo INT >> got' INT
    trap 'echo USR1 >> got' USR1
    sleep 1000 & sleep=$!
    trap 'kill $sleep; exit 0' USR2
    echo $$ > pid
    while :; do wait $sleep; done";
