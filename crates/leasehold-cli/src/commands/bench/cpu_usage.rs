use std::collections::HashMap;
use std::fs;
use std::io;

/// How busy this program and its machine were, as shares of the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CpuUsage {
    /// The share of one CPU that the busiest thread of this program used.
    pub(super) busiest_thread: f64,
    /// The idle share of all CPUs together.
    pub(super) machine_idle: f64,
}

/// The counters of the kernel at one instant, in its unit of time. The difference of two is the usage.
#[derive(Debug)]
pub(super) struct ProcStats {
    machine: Machine,
    /// What each thread of this program has used.
    threads: HashMap<String, u64>,
}

/// What all CPUs together have done since the machine started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Machine {
    cpus: u64,
    total: u64,
    idle: u64,
}

impl ProcStats {
    pub(super) fn read() -> io::Result<Self> {
        let machine = Machine::of(&fs::read_to_string("/proc/stat")?).ok_or_else(strange)?;
        let mut threads = HashMap::new();
        for entry in fs::read_dir("/proc/self/task")? {
            let entry = entry?;
            // A thread may have ended since the folder was read.
            if let Ok(stat) = fs::read_to_string(entry.path().join("stat")) {
                let name = entry.file_name().to_string_lossy().into_owned();
                threads.insert(name, used(&stat).ok_or_else(strange)?);
            }
        }
        Ok(Self { machine, threads })
    }

    /// The usage from `self` on to `later`.
    pub(super) fn until(&self, later: &Self) -> CpuUsage {
        let total = later.machine.total.saturating_sub(self.machine.total);
        let idle = later.machine.idle.saturating_sub(self.machine.idle);
        let used = later.threads.iter().map(|(thread, used)| {
            let before = self.threads.get(thread).copied().unwrap_or(0);
            used.saturating_sub(before)
        });
        let busiest = used.max().unwrap_or(0);
        CpuUsage {
            busiest_thread: share(busiest * self.machine.cpus.max(1), total),
            machine_idle: share(idle, total),
        }
    }
}

impl Machine {
    /// Reads `/proc/stat`: user, nice, system, idle, iowait, irq, softirq and steal (proc_stat(5)); what
    /// follows is in these already.
    fn of(stat: &str) -> Option<Self> {
        let all = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Option<Vec<u64>> = all
            .split_whitespace()
            .take(8)
            .map(|field| field.parse().ok())
            .collect();
        let ticks = ticks?;
        let is_cpu = |line: &&str| {
            let number = line.strip_prefix("cpu");
            number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        Some(Self {
            cpus: u64::try_from(stat.lines().filter(is_cpu).count()).ok()?,
            total: ticks.iter().sum(),
            idle: ticks.get(3)? + ticks.get(4)?,
        })
    }
}

/// What a thread has used as itself and in the kernel, of its `/proc/…/stat` (proc_pid_stat(5)).
fn used(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64
}

fn strange() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "/proc is not that of Linux")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  100 0 50 700 50 5 5 90 0 0\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\n";

    #[test]
    fn the_machines_books_are_read() {
        let machine = Machine::of(STAT).unwrap();
        let expected = Machine {
            cpus: 2,
            total: 1_000,
            idle: 750,
        };
        assert_eq!(machine, expected);
        assert_eq!(Machine::of("intr 5\n"), None);
        assert_eq!(Machine::of("cpu  1 x\n"), None);
    }

    #[test]
    fn a_threads_name_may_hold_anything() {
        let stat = "7 (a) b (c) S 1 1 1 0 -1 4 0 0 0 0 30 12 0 0 20 0";
        assert_eq!(used(stat), Some(42));
        assert_eq!(used("7 (a) S 1"), None);
    }

    #[test]
    fn an_effort_lies_between_two_readings() {
        let proc_stats = |total, idle, mine| ProcStats {
            machine: Machine {
                cpus: 2,
                total,
                idle,
            },
            threads: HashMap::from([("1".to_owned(), mine), ("2".to_owned(), 0)]),
        };
        let cpu_usage = proc_stats(1_000, 500, 10).until(&proc_stats(1_200, 550, 100));
        assert_eq!(cpu_usage.busiest_thread, 0.9);
        assert_eq!(cpu_usage.machine_idle, 0.25);
        let nothing = proc_stats(1, 1, 1).until(&proc_stats(1, 1, 1));
        assert_eq!((nothing.busiest_thread, nothing.machine_idle), (0.0, 0.0));
    }

    #[test]
    fn the_books_of_this_machine_make_sense() {
        let proc_stats = ProcStats::read().unwrap();
        assert!(proc_stats.machine.cpus > 0 && !proc_stats.threads.is_empty());
    }
}
