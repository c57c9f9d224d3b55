use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::faults::Proxy;
use crate::servers::ports::{free_port, retry_taken_ports};
use crate::servers::server_process::{Ready, ServerProcess, directory, folder_of};
use crate::servers::{ServerClock, TestCa, until};

/// A real ZooKeeper ensemble. Dropping it kills the servers.
///
/// A tick takes 200 ms, so sessions end after 0.4 to 8 s. The servers do not wait for the disk.
#[derive(Debug)]
pub struct Zookeeper {
    members: Vec<Member>,
    ca: Option<Arc<TestCa>>,
    jars: PathBuf,
    /// The paths from the last member to the others, if it was started behind proxies.
    links: Vec<Proxy>,
}

/// One server. Its ports stay reserved while it is down.
#[derive(Debug)]
struct Member {
    process: ServerProcess,
    client: u16,
    tls: Option<u16>,
    quorum: u16,
    election: u16,
    clock: Option<ServerClock>,
}

/// The configuration of a [`Zookeeper`]: one server, without TLS.
#[derive(Clone, Debug, Default)]
pub struct ZookeeperBuilder {
    count: usize,
    tls: bool,
    links: bool,
    clocks: bool,
    settings: String,
}

/// The jars that a server needs.
const JARS: [&str; 16] = [
    "zookeeper",
    "zookeeper-jute",
    "slf4j-api",
    "slf4j-simple",
    "metrics-core",
    "snappy-java",
    "netty-buffer",
    "netty-common",
    "netty-handler",
    "netty-transport",
    "netty-transport-native-epoll",
    "netty-transport-native-unix-common",
    "netty-codec",
    "netty-resolver",
    "commons-cli",
    "commons-io",
];

impl ZookeeperBuilder {
    /// Starts this many servers.
    #[must_use]
    pub fn members(mut self, count: usize) -> Self {
        self.count = count;
        self
    }

    /// Also listens for TLS, and demands a certificate of the client, as servers do by default.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Puts a proxy in front of each server that the last one may follow. It then can be cut off from its leader.
    #[must_use]
    pub fn with_links(mut self) -> Self {
        self.links = true;
        self
    }

    /// Gives each server a clock that the test can step.
    #[must_use]
    pub fn with_clocks(mut self) -> Self {
        self.clocks = true;
        self
    }

    /// Adds a line to the configuration.
    #[must_use]
    pub fn setting(mut self, line: &str) -> Self {
        self.settings += line;
        self.settings.push('\n');
        self
    }

    /// Starts the servers, and returns once they serve clients.
    ///
    /// # Panics
    ///
    /// If they cannot be started. The message says what to install, or shows the output of a server.
    pub fn start(&self) -> Zookeeper {
        let jars = jars();
        let started = folder_of(&["zookeeper.jar"], [jars])
            .and_then(|jars| retry_taken_ports(|| self.try_start(&jars)));
        started.unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_start(&self, jars: &Path) -> io::Result<Zookeeper> {
        let ca = self.tls.then(|| Arc::new(TestCa::new()));
        let mut members = Vec::new();
        for _ in 0..self.count.max(1) {
            let dir = directory("zookeeper")?;
            let clock = self.clocks.then(|| ServerClock::build(dir.path()));
            let (clock, client) = (clock.transpose()?, free_port());
            let ready = Ready::Answers(client, |port| mode(port).is_some());
            let command = command(jars, dir.path());
            let mut process = ServerProcess::new("ZooKeeper", command, ready, dir);
            process.environment = clock.iter().flat_map(ServerClock::environment).collect();
            members.push(Member {
                process,
                clock,
                client,
                tls: ca.as_ref().map(|_| free_port()),
                quorum: free_port(),
                election: free_port(),
            });
        }
        let others = members.len() - 1;
        let links = members.iter().take(if self.links { others } else { 0 });
        let links: Vec<Proxy> = links.map(|member| Proxy::to(member.quorum)).collect();
        for number in 0..members.len() {
            let mut peers = String::new();
            for (other, member) in members.iter().enumerate().filter(|_| members.len() > 1) {
                let link = links.get(other).filter(|_| number == others);
                let quorum = link.map_or(member.quorum, Proxy::port);
                let election = member.election;
                let _ = writeln!(peers, "server.{}=127.0.0.1:{quorum}:{election}", other + 1);
            }
            self.configure(&members[number], number, &peers, ca.as_deref())?;
        }
        let mut started = Zookeeper {
            members,
            ca,
            jars: jars.to_owned(),
            links,
        };
        started.launch_all()?;
        Ok(started)
    }

    fn configure(
        &self,
        member: &Member,
        number: usize,
        peers: &str,
        ca: Option<&TestCa>,
    ) -> io::Result<()> {
        let dir = member.process.dir();
        let data = dir.join("data");
        fs::create_dir(&data)?;
        fs::write(data.join("myid"), (number + 1).to_string())?;
        let mut lines = format!(
            "tickTime=200\ninitLimit=50\nsyncLimit=10\nminSessionTimeout=400\nmaxSessionTimeout=8000\n\
             dataDir={}\nclientPort={}\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\nadmin.enableServer=false\n\
             4lw.commands.whitelist=srvr,ruok\n{peers}{}",
            data.display(),
            member.client,
            self.settings
        );
        if let (Some(ca), Some(port)) = (ca, member.tls) {
            // A server reads its certificate and its key from one file.
            let both = [
                fs::read(ca.server_certificate())?,
                fs::read(ca.server_key())?,
            ]
            .concat();
            fs::write(dir.join("server.pem"), both)?;
            let _ = write!(
                lines,
                "secureClientPort={port}\nsecureClientPortAddress=127.0.0.1\n\
                 serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
                 ssl.keyStore.location={}\nssl.trustStore.location={}\n",
                dir.join("server.pem").display(),
                ca.certificate().display()
            );
        }
        fs::write(dir.join("zoo.cfg"), lines)
    }
}

impl Zookeeper {
    /// Starts one server.
    ///
    /// # Panics
    ///
    /// As [`ZookeeperBuilder::start`].
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// Returns a builder for other ensembles.
    pub fn builder() -> ZookeeperBuilder {
        ZookeeperBuilder::default()
    }

    /// Returns the address of all servers.
    pub fn url(&self) -> String {
        self.url_at(self.ports())
    }

    /// Returns the address of servers at these ports, for example those of proxies.
    pub fn url_at(&self, ports: impl IntoIterator<Item = u16>) -> String {
        let hosts: Vec<String> = ports
            .into_iter()
            .map(|port| format!("127.0.0.1:{port}"))
            .collect();
        format!("zk://{}", hosts.join(","))
    }

    /// Returns the address of the servers for TLS, with the files for a client.
    ///
    /// # Panics
    ///
    /// If they were started without TLS.
    pub fn tls_url(&self) -> String {
        let hosts = self.members.iter().map(|member| {
            let port = member.tls.expect("servers with TLS");
            format!("127.0.0.1:{port}")
        });
        let hosts: Vec<String> = hosts.collect();
        let ca = self.ca();
        format!(
            "zks://{}/leasehold?ca={}&cert={}&key={}",
            hosts.join(","),
            ca.certificate().display(),
            ca.server_certificate().display(),
            ca.server_key().display()
        )
    }

    /// Returns the authority that signed the certificates.
    ///
    /// # Panics
    ///
    /// If they were started without TLS.
    pub fn ca(&self) -> &TestCa {
        self.ca.as_deref().expect("servers with TLS")
    }

    /// Returns the ports of the servers for clients, in their order.
    pub fn ports(&self) -> Vec<u16> {
        self.members.iter().map(|member| member.client).collect()
    }

    /// Returns the process id of a server.
    ///
    /// # Panics
    ///
    /// If it was killed.
    pub fn pid(&self, number: usize) -> u32 {
        self.members[number].process.id()
    }

    /// Returns the clock of a server.
    ///
    /// # Panics
    ///
    /// If the servers were started without clocks of their own.
    pub fn clock(&self, number: usize) -> &ServerClock {
        let clock = self.members[number].clock.as_ref();
        clock.expect("servers with clocks of their own")
    }

    /// Returns the paths from the last server to the others.
    pub fn links(&self) -> &[Proxy] {
        &self.links
    }

    /// Returns the class path of the server, which has the client of Java and Curator, too.
    pub fn class_path(&self) -> String {
        let curator = [
            "curator-client",
            "curator-framework",
            "curator-recipes",
            "guava",
        ];
        class_path(&self.jars, JARS.into_iter().chain(curator))
    }

    /// Returns what a server says about itself, as `leader`, `follower` or `standalone`; `None` if it serves no clients.
    pub fn mode(&self, number: usize) -> Option<String> {
        mode(self.members[number].client)
    }

    /// Returns what the first server says about itself after `name`, such as `Received`.
    pub fn fact(&self, name: &str) -> Option<String> {
        fact(self.members[0].client, name)
    }

    /// Returns the number of the leader, once there is one.
    ///
    /// # Panics
    ///
    /// If none is elected in time.
    pub fn leader(&self) -> usize {
        let mut leader = None;
        until("a leader is elected", || {
            let mut members = self.members.iter();
            leader = members.position(|member| {
                member.process.is_running() && mode(member.client).as_deref() == Some("leader")
            });
            leader.is_some()
        });
        leader.expect("a leader")
    }

    /// Stops a server (`SIGSTOP`), and returns once it is stopped. Its kernel still accepts connections and data for it.
    pub fn freeze(&self, number: usize) {
        self.members[number].process.freeze();
    }

    /// Continues a stopped server (`SIGCONT`).
    pub fn thaw(&self, number: usize) {
        self.members[number].process.thaw();
    }

    /// Kills a server at once (`SIGKILL`). It keeps its data and its ports.
    pub fn kill(&mut self, number: usize) {
        self.members[number].process.kill();
    }

    /// Starts a server again that was killed, and returns once it serves clients.
    ///
    /// # Panics
    ///
    /// As [`ZookeeperBuilder::start`].
    pub fn restart(&mut self, number: usize) {
        self.members[number].process.restart();
    }

    /// Kills all servers, and starts them together: one alone does not serve clients.
    ///
    /// # Panics
    ///
    /// As [`ZookeeperBuilder::start`].
    pub fn restart_all(&mut self) {
        let members = self.members.iter_mut();
        members.for_each(|member| member.process.kill());
        self.launch_all().unwrap_or_else(|error| panic!("{error}"));
    }

    /// Starts all servers, and returns once they serve clients.
    fn launch_all(&mut self) -> io::Result<()> {
        let mut members = self.members.iter_mut();
        members.try_for_each(|member| member.process.launch())?;
        let mut members = self.members.iter_mut();
        members.try_for_each(|member| member.process.await_ready())
    }
}

/// Returns the command that runs a server with the configuration in `dir`.
fn command(jars: &Path, dir: &Path) -> Vec<String> {
    let class_path = class_path(jars, JARS);
    let configuration = dir.join("zoo.cfg").display().to_string();
    [
        "java",
        "-Xmx96m",
        "-Xshare:auto",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Dzookeeper.forceSync=no",
        // How often the server removes empty containers; once a minute by default.
        "-Dznode.container.checkIntervalMs=200",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-cp",
        &class_path,
        "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        &configuration,
    ]
    .map(String::from)
    .into()
}

fn class_path<'a>(folder: &Path, jars: impl IntoIterator<Item = &'a str>) -> String {
    let jars = jars.into_iter().map(|jar| format!("{jar}.jar"));
    let jars: Vec<String> = jars
        .map(|jar| folder.join(jar).display().to_string())
        .collect();
    jars.join(":")
}

fn mode(port: u16) -> Option<String> {
    fact(port, "Mode")
}

/// Returns what the server at `port` says about itself after `name`.
fn fact(port: u16, name: &str) -> Option<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    stream.write_all(b"srvr").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let mut lines = answer.lines();
    let fact = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))?;
    Some(fact.to_owned())
}

/// Returns the folder with the jars. A variable can name another folder than that of `setup`.
fn jars() -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "a test's way to its server")]
    let named = std::env::var_os("LEASEHOLD_TEST_ZOOKEEPER");
    named.map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-zookeeper/usr/share/java"),
        PathBuf::from,
    )
}

/// Compiles a program in Java against the client of ZooKeeper, and returns the command that runs it.
///
/// # Panics
///
/// If it does not compile.
pub fn java_program(servers: &Zookeeper, folder: &Path, name: &str, source: &str) -> Command {
    let file = folder.join(format!("{name}.java"));
    fs::write(&file, source).expect("a source file");
    let class_path = servers.class_path();
    let compiled = Command::new("javac")
        .args(["-nowarn", "-cp", &class_path, "-d"])
        .arg(folder)
        .arg(&file)
        .output()
        .expect("javac, which `cargo xtask setup` installs");
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "javac: {said}");
    let mut command = Command::new("java");
    command.args([
        "-XX:TieredStopAtLevel=1",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        "-cp",
    ]);
    command
        .arg(format!("{class_path}:{}", folder.display()))
        .arg(name);
    command
}
