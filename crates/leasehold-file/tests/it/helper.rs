//! Another process that takes a lock: this test binary again, told what to do on its stdin.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use leasehold::store::{Attempt, Claim, Permits, Store};
use leasehold::{Error, Fence, Mode};
use leasehold_file::FileStore;
use leasehold_testkit::servers::until;

use crate::world;

/// A running helper. Dropping it kills it.
pub(crate) struct Helper {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Helper {
    pub(crate) fn start() -> Self {
        Self::start_under(&[])
    }

    /// Starts it as the last argument of another command.
    pub(crate) fn start_under(wrapper: &[&str]) -> Self {
        let myself = std::env::current_exe().unwrap();
        let own = ["--exact", "helper::a_helper_obeys", "--nocapture"];
        let mut command = match wrapper {
            [] => Command::new(&myself),
            [program, arguments @ ..] => {
                let mut command = Command::new(program);
                command.args(arguments).arg(&myself);
                command
            }
        };
        let mut child = command
            .args(own)
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

    /// Starts `count` helpers, gives all of them the same order at once, and returns their answers.
    pub(crate) fn ask_several(count: u32, order: &[&str]) -> Vec<String> {
        std::thread::scope(|scope| {
            let asked = (0..count).map(|_| scope.spawn(|| Self::start().ask(order)));
            let asked: Vec<_> = asked.collect();
            let answers = asked.into_iter().map(|it| it.join().unwrap());
            answers.collect()
        })
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

    pub(crate) fn take(&mut self, dir: &Path, name: &str, mode: Mode) -> u64 {
        let answer = self.try_take(dir, name, mode);
        let fence = answer.strip_prefix("granted ");
        fence.unwrap_or_else(|| panic!("{answer}")).parse().unwrap()
    }

    pub(crate) fn try_take(&mut self, dir: &Path, name: &str, mode: Mode) -> String {
        self.ask(&["take", dir.to_str().unwrap(), name, &mode.to_string()])
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

/// A test, and the way into the other process: in there, it is the helper.
#[test]
fn a_helper_obeys() {
    if std::env::var_os(ROLE).is_some() {
        return obey();
    }
    let dir = tempfile::tempdir().unwrap();
    let mut helper = Helper::start();
    assert!(helper.take(dir.path(), "deploy", Mode::Exclusive) > 0);
    assert_eq!(
        helper.try_take(dir.path(), "deploy", Mode::Exclusive),
        "busy"
    );
}

#[expect(clippy::print_stdout, reason = "it answers through a pipe")]
fn obey() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let client = world::client();
    let mut taken = Vec::new();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<_> = line.split('\t').collect();
        let answer = match words[..] {
            ["take", dir, name, mode] => {
                let claim = world::claim(&client, name, 0).with_mode(read_mode(mode));
                let opened = FileStore::open(dir);
                answer_to(opened.and_then(|store| {
                    let attempt = runtime.block_on(store.acquire(&claim))?;
                    taken.push((store, claim));
                    Ok(attempt)
                }))
            }
            // It asks for the exclusive lock, is refused, and waits until it is killed or has to leave.
            ["wait", dir, name] => {
                let claim = world::in_turn(&world::claim(&client, name, 0));
                taken.push((FileStore::open(dir).unwrap(), claim.clone()));
                let (store, _) = taken.last().unwrap();
                assert!(world::is_busy(runtime.block_on(store.acquire(&claim))));
                "waiting".into()
            }
            ["leave"] => {
                let (store, claim) = taken.pop().unwrap();
                runtime.block_on(world::leave(&store, &claim));
                "left".into()
            }
            ["increment", dir, name, file, times] => {
                let store = FileStore::open(dir).unwrap();
                let times = times.parse().unwrap();
                runtime.block_on(increment(&store, &client, name, file.as_ref(), times))
            }
            ["go in and out", dir, name, permits, tally, times] => {
                let store = FileStore::open(dir).unwrap();
                let permits = Permits::new(permits.parse().unwrap()).unwrap();
                let times = times.parse().unwrap();
                let claim = || world::claim(&client, name, 0).with_mode(Mode::Permit(permits));
                runtime.block_on(go_in_and_out(&store, claim, permits, tally.as_ref(), times))
            }
            ["downgrade"] => {
                let (store, claim) = taken.last().unwrap();
                let shared = world::held(&claim.clone().with_mode(Mode::Shared), Fence::MAX);
                format!("{:?}", runtime.block_on(store.renew(&[shared]))[0])
            }
            // A child that has the descriptor as its stdin, and lives for a while.
            ["hand down"] => {
                let (store, claim) = taken.last().unwrap();
                let descriptor: OwnedFd = store.descriptor(claim.owner).unwrap();
                let child = Command::new("sleep")
                    .arg("3600")
                    .stdin(File::from(descriptor))
                    .stdout(Stdio::null())
                    .spawn();
                child.unwrap().id().to_string()
            }
            ["release"] => {
                let (store, claim) = taken.pop().unwrap();
                format!("{:?}", runtime.block_on(store.release(&claim)).unwrap())
            }
            _ => panic!("unknown order {line:?}"),
        };
        println!("{MARK}{answer}");
    }
}

fn answer_to(attempt: Result<Attempt, Error>) -> String {
    match attempt {
        Ok(Attempt::Granted(grant)) => format!("granted {}", grant.fence),
        Ok(Attempt::Busy(_)) => "busy".into(),
        Err(error) => format!("error {:?} {error}", error.kind()),
    }
}

/// Adds one to the number in `file`, `times` times, each under the lock; returns the fences.
async fn increment(
    store: &FileStore,
    client: &Arc<leasehold::store::ClientInfo>,
    name: &str,
    file: &Path,
    times: u32,
) -> String {
    let mut fences = Vec::new();
    for _ in 0..times {
        let claim = world::in_turn(&world::claim(client, name, 0));
        fences.push(world::wait_for(store, &claim).await.to_string());
        world::leave(store, &claim).await;
        let number: u64 = std::fs::read_to_string(file).unwrap().parse().unwrap();
        std::fs::write(file, (number + 1).to_string()).unwrap();
        store.release(&claim).await.unwrap();
    }
    fences.join(" ")
}

/// Holds a permit `times` times, each time until all permits were in use together; returns the
/// fences.
async fn go_in_and_out(
    store: &FileStore,
    claim: impl Fn() -> Claim,
    permits: Permits,
    file: &Path,
    times: u32,
) -> String {
    let mut fences = Vec::new();
    for _ in 0..times {
        let claim = world::in_turn(&claim());
        fences.push(world::wait_for(store, &claim).await.to_string());
        world::leave(store, &claim).await;
        let [inside, ..] = tally(file, 1);
        assert!(inside <= permits.get().into(), "{inside} are inside");
        until("all permits in use", || {
            tally(file, 0)[1] >= permits.get().into()
        });
        tally(file, -1);
        store.release(&claim).await.unwrap();
    }
    fences.join(" ")
}

/// Returns how many are inside after `change`, the most there were, and how many came, counted in
/// `file`.
fn tally(file: &Path, change: i64) -> [i64; 3] {
    let file = File::options().read(true).write(true).open(file).unwrap();
    file.lock().unwrap();
    let text = std::io::read_to_string(&file).unwrap();
    let mut numbers = text.split(' ').map(|it| it.parse::<i64>().unwrap());
    let [inside, most, came] = [(); 3].map(|()| numbers.next().unwrap());
    let inside = inside + change;
    let counted = [inside, most.max(inside), came + change.max(0)];
    let text = counted.map(|number| number.to_string()).join(" ");
    file.set_len(0).unwrap();
    file.write_all_at(text.as_bytes(), 0).unwrap();
    counted
}

fn read_mode(text: &str) -> Mode {
    match text.strip_prefix("permit of ") {
        Some(count) => Mode::Permit(Permits::new(count.parse().unwrap()).unwrap()),
        None if text == "shared" => Mode::Shared,
        None => Mode::Exclusive,
    }
}

/// Set in the other process.
const ROLE: &str = "LEASEHOLD_TEST_ROLE";
const MARK: &str = "helper answers: ";
