use std::thread;
use std::time::{Duration, Instant};

use leasehold_testkit::servers::{RedisSet, Reply};

use crate::measure::subject::Subject;
use crate::measure::worker_process::{KEY, WorkerProcess};

/// Makes sure that the subject takes a lock that is really there: the servers show its key, a second
/// acquire is denied, and nothing is left after the release. Returns how many of the servers showed
/// the lock.
pub(crate) fn verify(
    subject: &Subject,
    worker: &mut WorkerProcess,
    servers: &RedisSet,
) -> Result<usize, String> {
    worker.command("take", "taken")?;
    let majority = servers.len() / 2 + 1;
    let seen = soon(|| locked(subject, servers), |seen| seen == servers.len());
    if seen < majority {
        return Err(format!(
            "{}: only {seen} servers show its lock",
            subject.name
        ));
    }
    worker.command("second", "denied")?;
    worker.command("give", "given")?;
    match soon(|| locked(subject, servers), |seen| seen == 0) {
        0 => Ok(seen),
        left => Err(format!(
            "{}: {left} servers still show its lock after the release",
            subject.name
        )),
    }
}

/// On how many servers the lock is held.
fn locked(subject: &Subject, servers: &RedisSet) -> usize {
    let holds = Reply::Integer(i64::from(!subject.key_is_free()));
    let key = format!("{}{KEY}", subject.prefix);
    let answers = servers
        .iter()
        .map(|server| server.command(&["EXISTS", &key]));
    answers.filter(|answer| *answer == holds).count()
}

/// Some answer at the majority, and the rest of the servers follows. The last value seen.
fn soon(look: impl Fn() -> usize, done: impl Fn(usize) -> bool) -> usize {
    let began = Instant::now();
    loop {
        let seen = look();
        if done(seen) || began.elapsed() > Duration::from_secs(3) {
            return seen;
        }
        thread::sleep(Duration::from_millis(2)); // between two checks of the condition
    }
}
