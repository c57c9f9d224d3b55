//! Runs the console examples of the runbooks on real servers.
//!
//! Each page is one session, as in `pages`. The servers are durable Redis servers of the test. In the session, `ssh` is
//! a script that does to one of them what the page does to a host.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a panic is how a test fails"
)]

mod session;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use leasehold_testkit::servers::RedisServer;
use tempfile::TempDir;

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
