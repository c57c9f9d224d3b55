use std::fs;

/// What a process, or the machine, has used, in hundredths of a second: USER_HZ, which is 100 on
/// every system that we support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticks(u64);

impl Ticks {
    /// What all threads of `pid` have used so far.
    pub(crate) fn of_process(pid: u32) -> Result<Self, String> {
        let path = format!("/proc/{pid}/stat");
        let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        process(&text).ok_or_else(|| format!("{path}: {text:?}"))
    }

    pub(crate) fn of_processes(pids: &[u32]) -> Result<Self, String> {
        let each = pids.iter().map(|pid| Ok(Self::of_process(*pid)?.0));
        Ok(Self(each.sum::<Result<u64, String>>()?))
    }

    /// What everything on this machine has used so far, and what the host took from it.
    pub(crate) fn of_machine() -> Result<Self, String> {
        let text = fs::read_to_string("/proc/stat").map_err(|error| error.to_string())?;
        machine(&text).ok_or_else(|| format!("/proc/stat: {text:?}"))
    }

    pub(crate) fn seconds_since(self, earlier: Self) -> f64 {
        crate::figures::number(usize::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
            / 100.0
    }
}

/// The memory of a process that lies in RAM now, in MiB.
pub(crate) fn resident(pid: u32) -> Result<f64, String> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    resident_in(&text).ok_or_else(|| format!("{path} has no VmRSS"))
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

/// The fields `utime` and `stime`; the name before them, in brackets, may hold anything.
fn process(stat: &str) -> Option<Ticks> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Ticks(user + system))
}

/// `cpu user nice system idle iowait irq softirq steal …`
fn machine(stat: &str) -> Option<Ticks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let busy = [0, 1, 2, 5, 6, 7].iter().filter_map(|at| fields.get(*at));
    Some(Ticks(busy.sum()))
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
    fn a_process_is_read_behind_its_name() {
        let stat = "42 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 1";
        assert_eq!(process(stat), Some(Ticks(200)));
        assert_eq!(process("42 (a) S 1"), None);
    }

    #[test]
    fn idle_time_is_not_used_time() {
        let stat = "cpu  10 1 20 1000 5 2 3 4 0 0\ncpu0 1 1 1 1 1 1 1 1\n";
        assert_eq!(machine(stat), Some(Ticks(40)));
    }

    #[test]
    fn memory_is_in_mebibytes() {
        assert_eq!(resident_in("Name:\tx\nVmRSS:\t    2048 kB\n"), Some(2.0));
        assert_eq!(resident_in("Name:\tx\n"), None);
    }

    #[test]
    fn this_process_can_be_read() {
        let own = std::process::id();
        assert!(Ticks::of_process(own).is_ok());
        assert!(Ticks::of_machine().is_ok());
        assert!(resident(own).unwrap() > 0.0);
    }
}
