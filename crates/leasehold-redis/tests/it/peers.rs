//! Other libraries on the plain wire: they and we exclude each other.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use leasehold::{Release, Store};
use leasehold_testkit::servers::{RedisServer, Reply};

use crate::support::{busy, claim, granted, member, released, value};

#[tokio::test]
async fn a_plain_set_and_ours_exclude_each_other() {
    let server = RedisServer::start();
    let store = member(&server);
    let plain = || server.command(&["SET", "deploy", "token", "NX", "PX", "60000"]);
    let mine = claim("deploy");
    granted(&store, &mine).await;
    assert_eq!(plain(), Reply::Nil);
    released(&store, &mine).await;
    assert_eq!(plain(), Reply::Status("OK".into()));
    assert_eq!(busy(&store, &mine).await.holder, None);
    assert_eq!(store.release(&mine).await.unwrap(), Release::WasLost);
    assert_eq!(value(&server, "deploy"), Reply::Bulk("token".into()));
    server.command(&["DEL", "deploy"]);
    granted(&store, &mine).await;
}

#[tokio::test]
async fn redis_py_and_ours_exclude_each_other() {
    let server = RedisServer::start();
    let store = member(&server);
    let mut python = RedisPy::start(server.port());
    let mine = claim("deploy");
    assert_eq!(python.ask("acquire deploy"), "True");
    assert_eq!(busy(&store, &mine).await.holder, None);
    assert_eq!(python.ask("release deploy"), "True");
    granted(&store, &mine).await;
    assert_eq!(python.ask("acquire deploy"), "False");
    released(&store, &mine).await;
    assert_eq!(python.ask("acquire deploy"), "True");
}

#[tokio::test]
async fn redis_py_waits_for_our_readers_too() {
    let server = RedisServer::start();
    let store = member(&server);
    let mut python = RedisPy::start(server.port());
    let reader = crate::support::shared("doc");
    granted(&store, &reader).await;
    assert_eq!(python.ask("acquire doc"), "False");
    released(&store, &reader).await;
    assert_eq!(python.ask("acquire doc"), "True");
}

struct RedisPy {
    process: Child,
    questions: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

/// Names the Python that has the `redis` module, where it is not the one of `cargo xtask test`.
const PYTHON: &str = "LEASEHOLD_TEST_PYTHON";

impl RedisPy {
    fn start(port: u16) -> Self {
        let python = python();
        let has_module = Command::new(&python).args(["-c", "import redis"]).output();
        assert!(
            has_module.is_ok_and(|output| output.status.success()),
            "{} cannot `import redis`, and this test needs redis-py: run `cargo xtask test`, or \
             `python3 -m venv target/test-venv && target/test-venv/bin/pip install redis`, or set \
             {PYTHON} to a Python that has it",
            python.display()
        );
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/redis_py.py");
        let mut process = Command::new(python)
            .arg(script)
            .arg(port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let questions = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap()).lines();
        Self {
            process,
            questions,
            answers,
        }
    }

    fn ask(&mut self, question: &str) -> String {
        writeln!(self.questions, "{question}").unwrap();
        self.answers.next().unwrap().unwrap()
    }
}

impl Drop for RedisPy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn python() -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "a test's way to its peer")]
    let named = std::env::var_os(PYTHON);
    named.map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-venv/bin/python"),
        PathBuf::from,
    )
}
