//! Runs the console examples of the runbooks on real servers.
//!
//! Each page about Redis is one session, as in `pages`, on durable servers of the test. In the session, `ssh` is a script that
//! does to one of them what the page does to a host. Of the pages about other stores, each section is a session.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a panic is how a test fails"
)]

mod operator;
mod session;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use leasehold_testkit::servers::{
    EtcdBuilder, EtcdServer, EtcdSet, PostgresServer, RedisServer, Zookeeper, until,
};
use tempfile::TempDir;

use operator::Site;
use session::{HOSTS, assert_session, run_session, script};

#[test]
fn no_majority() {
    let hosts = Hosts::start();
    hosts.prepare("ssh 10.0.0.2 systemctl stop redis; ssh 10.0.0.3 systemctl stop redis");
    hosts.follow("no-majority");
}

#[test]
fn stuck_job() {
    let hosts = Hosts::start();
    hosts.prepare(
        "leasehold run deploy -- sleep 1000 > /dev/null 2>&1 & \
         until leasehold status --json deploy | grep -q '\"held\":true'; do :; done",
    );
    hosts.follow("stuck-job");
}

#[test]
fn replace_a_server() {
    Hosts::start().follow("replace-a-server");
}

#[test]
fn restart_and_upgrade() {
    Hosts::start().follow("restart-and-upgrade");
}

#[test]
fn backup_and_restore() {
    Hosts::start().follow("backup-and-restore");
}

#[test]
fn change_the_limits() {
    Hosts::start().follow("change-the-limits");
}

#[test]
fn dead_holder() {
    let hosts = Hosts::start();
    hosts.prepare(
        "leasehold run --ttl 5s deploy -- sleep 1000 > /dev/null 2>&1 & \
         until leasehold status --json deploy | grep -q '\"held\":true'; do :; done; \
         kill -9 $(cat /proc/$!/task/*/children) $!",
    );
    hosts.follow("dead-holder");
}

#[test]
fn postgres_that_is_down() {
    let (mut primary, _standby, site) = postgres();
    primary.kill();
    site.follow("postgres.md", "The server is down", |host, command| {
        assert_eq!((host, command), ("db1", "systemctl start postgresql"));
        primary.restart();
    });
}

#[test]
fn postgres_that_fails_over() {
    let (mut primary, standby, site) = postgres();
    primary.kill();
    site.follow("postgres.md", "A standby takes over", |host, command| {
        assert_eq!((host, command), ("db2", "pg_ctlcluster 15 main promote"));
        standby.promote();
    });
}

/// A primary and a standby, which both have the schema.
fn postgres() -> (PostgresServer, PostgresServer, Site) {
    let primary = PostgresServer::start();
    let standby = PostgresServer::builder()
        .standby_of(primary.port(), "db2")
        .start();
    let mut init = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    init.arg("init").env("LEASEHOLD_STORE", primary.url());
    assert!(init.output().unwrap().status.success());
    until("the standby has the schema", || {
        standby.sql("select to_regnamespace('leasehold') is not null;") == ["t"]
    });
    let [first, second] = [&primary, &standby].map(|server| format!("127.0.0.1:{}", server.port()));
    let both = format!("{first},{second}");
    let site = Site {
        variables: vec![("LEASEHOLD_STORE", primary.url().replace(&first, &both))],
        names: vec![(first, "db1:5432".into()), (second, "db2:5432".into())],
    };
    (primary, standby, site)
}

#[test]
fn etcd_without_a_majority() {
    let mut members = EtcdSet::start(3);
    let site = etcd(&members);
    members[1].kill();
    members[2].kill();
    site.follow("etcd.md", "No majority", |host, command| {
        assert_eq!((host, command), ("etcd2", "systemctl start etcd"));
        members[1].restart();
    });
}

#[test]
fn etcd_that_is_full() {
    let settings = EtcdBuilder::default().argument("--quota-backend-bytes=1000000");
    let members = EtcdSet::start_with(3, settings);
    let value = "x".repeat(100_000);
    while members[0]
        .etcdctl(&["put", "other", &value])
        .status
        .success()
    {}
    let site = etcd(&members);
    site.follow("etcd.md", "The database is full", |host, _| {
        panic!("{host}")
    });
}

fn etcd(members: &EtcdSet) -> Site {
    let address = |member: &EtcdServer| format!("127.0.0.1:{}", member.port());
    let addresses: Vec<_> = members.iter().map(address).collect();
    let all = addresses.join(",");
    let names = (1..=3).map(|number| format!("etcd{number}:2379"));
    Site {
        variables: vec![
            ("LEASEHOLD_STORE", format!("etcd://{all}")),
            ("ETCDCTL_API", "3".into()),
            ("ETCDCTL_ENDPOINTS", all),
        ],
        names: addresses.into_iter().zip(names).collect(),
    }
}

#[test]
fn zookeeper_without_a_majority() {
    let mut servers = Zookeeper::builder().members(3).start();
    let names = (1..=3).map(|number| format!("zk{number}:2181"));
    let addresses = servers
        .ports()
        .into_iter()
        .map(|port| format!("127.0.0.1:{port}"));
    let site = Site {
        variables: vec![("LEASEHOLD_STORE", servers.url())],
        names: addresses.zip(names).collect(),
    };
    servers.kill(1);
    servers.kill(2);
    site.follow("zookeeper.md", "No majority", |host, command| {
        assert_eq!((host, command), ("zk2", "systemctl start zookeeper"));
        servers.restart(1);
    });
}

/// Four hosts with a Redis server each. The first three are a quorum.
struct Hosts {
    folder: TempDir,
    urls: Vec<String>,
}

impl Hosts {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let ssh = bin.join("ssh");
        fs::write(&ssh, include_str!("session/ssh.sh")).unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        let host = |name: &&str| {
            // The port of a server that is gone stays taken within this process.
            let port = RedisServer::start().port();
            let host = folder.path().join("hosts").join(name);
            fs::create_dir_all(&host).unwrap();
            fs::write(host.join("port"), port.to_string()).unwrap();
            assert!(run_ssh(
                folder.path(),
                &[name, "systemctl", "start", "redis"]
            ));
            format!("redis://127.0.0.1:{port}")
        };
        let mut urls: Vec<_> = HOSTS.iter().map(host).collect();
        for (url, name) in urls.iter_mut().zip(&HOSTS[..3]) {
            *url += &format!("?id={name}:6379");
        }
        let hosts = Self { folder, urls };
        hosts.prepare("leasehold init --max-ttl 5s");
        hosts
    }

    /// Runs commands, and ignores their output.
    fn prepare(&self, commands: &str) {
        let store = HOSTS[..3].iter().map(|host| format!("redis://{host}"));
        let store = store.collect::<Vec<_>>().join(",");
        let shown = format!("$ export LEASEHOLD_STORE={store}\n$ {commands}\n");
        run_session(&script(&shown, &self.urls, ""), self.folder.path());
    }

    fn follow(&self, runbook: &str) {
        let page = format!("docs/runbooks/{runbook}.md");
        assert_session(&page, &self.urls, self.folder.path());
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in HOSTS {
            run_ssh(self.folder.path(), &[host, "systemctl", "stop", "redis"]);
        }
    }
}

fn run_ssh(folder: &Path, arguments: &[&str]) -> bool {
    let mut ssh = Command::new(folder.join("bin/ssh"));
    ssh.args(arguments).status().unwrap().success()
}
