use std::fs;
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use crate::error::Fallible;

/// Processor time that a process, or the machine, has used so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CpuTime(Duration);

impl CpuTime {
    /// Of all threads of `pid`, also of those that have ended.
    fn of_process(pid: u32) -> Fallible<Self> {
        let used = || -> Fallible<TimeSpec> {
            let clock = clock_getcpuclockid(Pid::from_raw(pid.try_into()?))?;
            Ok(clock_gettime(clock)?)
        };
        let used = used().map_err(|error| format!("the time used by {pid}: {error}"))?;
        Ok(Self(used.into()))
    }

    /// Of `pid` and of the processes that it has started; of those that have ended, to a hundredth of a second.
    fn of_tree(pid: u32) -> Fallible<Self> {
        let path = format!("/proc/{pid}/stat");
        let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let ended = ended_children(&text).ok_or_else(|| format!("{path}: {text:?}"))?;
        let mut used = Self::of_process(pid)?.0 + ended.0;
        for child in children(pid) {
            // A child that ends just now is counted the next time.
            used += Self::of_tree(child).map_or(Duration::ZERO, |used| used.0);
        }
        Ok(Self(used))
    }

    fn of_trees(pids: &[u32]) -> Fallible<Self> {
        let each = pids.iter().map(|pid| Ok(Self::of_tree(*pid)?.0));
        Ok(Self(each.sum::<Fallible<Duration>>()?))
    }

    /// Of everything on this machine, with what the host took from it: to a hundredth of a second.
    fn of_machine() -> Fallible<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        Ok(machine(&text).ok_or_else(|| format!("/proc/stat: {text:?}"))?)
    }

    pub(crate) fn seconds_since(self, earlier: Self) -> f64 {
        self.0.saturating_sub(earlier.0).as_secs_f64()
    }
}

/// The processor time used so far by a client, by its servers, and by the whole machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage([CpuTime; 3]);

impl Usage {
    pub(crate) fn now(client: u32, servers: &[u32]) -> Fallible<Self> {
        Ok(Self([
            CpuTime::of_tree(client)?,
            CpuTime::of_trees(servers)?,
            CpuTime::of_machine()?,
        ]))
    }

    /// In seconds: the client, the servers, and all other processes.
    pub(crate) fn since(&self, earlier: &Self) -> [f64; 3] {
        let [client, servers, machine] =
            [0, 1, 2].map(|part| self.0[part].seconds_since(earlier.0[part]));
        [client, servers, (machine - client - servers).max(0.0)]
    }
}

/// The memory of a process that lies in RAM now, in MiB.
pub(crate) fn resident(pid: u32) -> Fallible<f64> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    Ok(resident_in(&text).ok_or_else(|| format!("{path} has no VmRSS"))?)
}

/// How many processes ran or wanted to on average, in the last minute.
pub(crate) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").to_owned()
}

/// Cores and kernel.
pub(crate) fn description() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let processor = read("/proc/cpuinfo");
    let model = processor
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{cores} cores of {model}, Linux {}", kernel.trim())
}

/// `cpu user nice system idle iowait irq softirq steal …`
fn machine(stat: &str) -> Option<CpuTime> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let busy = [0, 1, 2, 5, 6, 7].iter().filter_map(|at| fields.get(*at));
    // USER_HZ, which is 100 on every system that we support.
    let ticks: u64 = busy.sum();
    Some(CpuTime(Duration::from_millis(ticks * 10)))
}

/// The processes that `pid` has started and that have not ended.
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    let lists = threads.flatten().map(|thread| {
        // A thread that has just ended has none.
        fs::read_to_string(thread.path().join("children")).unwrap_or_default()
    });
    lists
        .flat_map(|list| {
            let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
            pids.collect::<Vec<u32>>()
        })
        .collect()
}

/// What the children used that a process has waited for: fields 16 and 17 of its `stat`. The name in brackets may
/// contain anything.
fn ended_children(stat: &str) -> Option<CpuTime> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = fields.get(13)?.parse::<u64>().ok()? + fields.get(14)?.parse::<u64>().ok()?;
    Some(CpuTime(Duration::from_millis(ticks * 10)))
}

fn resident_in(status: &str) -> Option<f64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_not_used_time() {
        let stat = "cpu  10 1 20 1000 5 2 3 4 0 0\ncpu0 1 1 1 1 1 1 1 1\n";
        assert_eq!(machine(stat), Some(CpuTime(Duration::from_millis(400))));
    }

    #[test]
    fn ended_children_are_in_the_stat_of_their_parent() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 9 8 0 0 11 12 13 14 20 0 1 0 99";
        assert_eq!(
            ended_children(stat),
            Some(CpuTime(Duration::from_millis(270)))
        );
        assert_eq!(ended_children("7 (a"), None);
    }

    #[test]
    fn children_are_part_of_the_tree() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let found = children(std::process::id());
        let ended = child.kill().and_then(|()| child.wait());
        assert!(found.contains(&child.id()) && ended.is_ok());
        assert!(CpuTime::of_tree(std::process::id()).is_ok());
    }

    #[test]
    fn memory_is_in_mebibytes() {
        assert_eq!(resident_in("Name:\tx\nVmRSS:\t    2048 kB\n"), Some(2.0));
        assert_eq!(resident_in("Name:\tx\n"), None);
    }
}
