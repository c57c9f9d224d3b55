//! Another process that takes a lock: this test binary again, told what to do on its stdin.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use leasehold::look::Pattern;
use leasehold::store::{AcquireError, Grant};
use leasehold::{Fence, Mode};
use leasehold_file::FileStore;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

use crate::store_fixture::{self, OpenStore, StoppedWait, StoreFixture};

/// A running helper. Dropping it kills it.
pub(crate) struct Helper {
    child: std::process::Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Helper {
    pub(crate) fn start() -> Self {
        Self::start_under(&[])
    }

    /// Starts a helper that holds the lock.
    pub(crate) fn holding(fixture: &StoreFixture, mode: Mode) -> Self {
        let mut helper = Self::start();
        helper.take(fixture, mode);
        helper
    }

    /// Starts it in a mount namespace of its own, once the shell has run `setup`.
    pub(crate) fn start_after_mount(setup: &str) -> Self {
        let script = format!("({setup}) && exec \"$0\" \"$@\"");
        let as_root: &[&str] = if geteuid().is_root() { &[] } else { &["-r"] };
        Self::start_under(&[&["unshare", "-m"], as_root, &["sh", "-c", &script]].concat())
    }

    /// Starts it as the last argument of another command.
    pub(crate) fn start_under(wrapper: &[&str]) -> Self {
        let myself = std::env::current_exe().unwrap();
        let mut command = match wrapper {
            [] => Command::new(&myself),
            [program, arguments @ ..] => {
                let mut command = Command::new(program);
                command.args(arguments).arg(&myself);
                command
            }
        };
        let mut child = command
            .args(["--exact", "helper::a_helper_obeys", "--nocapture"])
            .env(ROLE, "helper")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            orders,
            answers,
        }
    }

    /// Gives an order, and returns the answer.
    pub(crate) fn ask(&mut self, order: &[&str]) -> String {
        writeln!(self.orders, "{}", order.join("\t")).unwrap();
        loop {
            let line = self.answers.next().expect("the helper has ended").unwrap();
            // The test harness prints lines of its own, and may begin ours with one.
            if let Some((_, answer)) = line.split_once(MARK) {
                return answer.to_owned();
            }
        }
    }

    pub(crate) fn take(&mut self, fixture: &StoreFixture, mode: Mode) -> u64 {
        let answer = self.try_take(fixture.dir.path(), "deploy", mode);
        let fence = answer.strip_prefix("granted ");
        fence.unwrap_or_else(|| panic!("{answer}")).parse().unwrap()
    }

    pub(crate) fn try_take(&mut self, dir: &Path, name: &str, mode: Mode) -> String {
        self.ask(&["take", dir.to_str().unwrap(), name, &mode.to_string()])
    }

    pub(crate) fn release(&mut self) {
        assert_eq!(self.ask(&["release"]), "Released");
    }

    /// Starts a process that inherits the descriptor of the lock.
    pub(crate) fn hand_down(&mut self) -> Child {
        Child(self.ask(&["hand down"]).parse().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it with SIGKILL, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process of a helper. Dropping it kills it.
pub(crate) struct Child(i32);

impl Drop for Child {
    fn drop(&mut self) {
        kill(Pid::from_raw(self.0), Signal::SIGKILL).unwrap();
    }
}

/// A test, and the way into the other process: in there, it is the helper.
#[test]
fn a_helper_obeys() {
    if std::env::var_os(ROLE).is_some() {
        return obey();
    }
    let fixture = StoreFixture::new();
    let mut helper = Helper::holding(&fixture, Mode::Exclusive);
    let again = helper.try_take(fixture.dir.path(), "deploy", Mode::Exclusive);
    assert_eq!(again, "busy");
}

#[expect(clippy::print_stdout, reason = "it answers through a pipe")]
fn obey() {
    let client = store_fixture::client();
    let (mut taken, mut waiting) = (Vec::new(), None);
    store_fixture::block_on(async {
        for line in std::io::stdin().lines() {
            let line = line.unwrap();
            let words: Vec<_> = line.split('\t').collect();
            let answer = match words[..] {
                ["take", dir, name, mode] => {
                    let request =
                        store_fixture::request(&client, name, 0).with_mode(read_mode(mode));
                    let attempt = match FileStore::open(dir)
                        .map(|files| OpenStore::of(files, leasehold::env::Env::default()))
                    {
                        Ok(store) => {
                            let attempt = store.acquire(&request).await;
                            taken.push((store, request));
                            attempt
                        }
                        Err(error) => Err(error.into()),
                    };
                    answer_to(attempt)
                }
                // It asks for the exclusive lock, is refused, and waits until it is killed or has to leave.
                ["wait", dir, name] => {
                    let request = store_fixture::request(&client, name, 0);
                    waiting = Some(StoppedWait::begin(&OpenStore::at(dir), &request).await);
                    "waiting".into()
                }
                ["leave"] => {
                    waiting.take().unwrap().leave().await;
                    "left".into()
                }
                ["downgrade"] => {
                    let (store, request) = taken.last().unwrap();
                    let shared =
                        store_fixture::held(&request.clone().with_mode(Mode::Shared), Fence::MAX);
                    format!("{:?}", store.renew(&[shared]).await[0])
                }
                // A child that has the descriptor as its stdin, and lives for a while.
                ["hand down"] => {
                    let (store, request) = taken.last().unwrap();
                    let descriptor: OwnedFd = store.files.descriptor(request.owner).unwrap();
                    let child = Command::new("sleep")
                        .arg("3600")
                        .stdin(File::from(descriptor))
                        .stdout(Stdio::null())
                        .spawn();
                    child.unwrap().id().to_string()
                }
                // The names of the held locks, and then the reasons why some could not be read.
                ["list", dir] => {
                    let listing = OpenStore::at(dir).list_locks(&Pattern::all(), 10).await;
                    let listing = listing.unwrap();
                    let keys = listing.locks.iter().map(|lock| lock.key.to_string());
                    let reasons = listing.unreadable.iter().map(|it| it.reason().to_owned());
                    keys.chain(reasons).collect::<Vec<_>>().join("; ")
                }
                ["release"] => {
                    let (store, request) = taken.pop().unwrap();
                    format!("{:?}", store.release(&request).await.unwrap())
                }
                _ => panic!("unknown order {line:?}"),
            };
            println!("{MARK}{answer}");
        }
    });
}

fn answer_to(answer: Result<Grant, AcquireError>) -> String {
    match answer {
        Ok(grant) => format!("granted {}", grant.fence),
        Err(AcquireError::Busy(_)) => "busy".into(),
        Err(AcquireError::Failed(error)) => format!("error {:?} {error}", error.kind()),
    }
}

fn read_mode(text: &str) -> Mode {
    match text.strip_prefix("permit of ") {
        Some(count) => store_fixture::permit(count.parse().unwrap()),
        None if text == "shared" => Mode::Shared,
        None => Mode::Exclusive,
    }
}

/// Set in the other process.
const ROLE: &str = "LEASEHOLD_TEST_ROLE";
const MARK: &str = "helper answers: ";
