use std::fs;
use std::path::{Path as FilePath, PathBuf};
use std::process::{Command, Stdio};

use leasehold_testkit::servers::RedisSet;

use crate::exit::Fallible;
use crate::path::Path;
use crate::workload;

/// Returns the instructions of one cycle of `path`: the difference that twice as many cycles make, so that
/// the start of the program and its connections do not count.
///
/// Of `runs` runs of each length, the one with the fewest instructions counts. Chance only adds some, for example when
/// a busy machine delays a server. The work of the code itself recurs in every run.
///
/// # Errors
///
/// Valgrind is missing, or the path did not end.
pub fn count(path: &Path, runs: usize) -> Fallible<f64> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("callgrind.out");
    let least = |cycles| -> Fallible<f64> {
        let mut least = f64::INFINITY;
        for _ in 0..runs {
            record(path, cycles, &file)?;
            least = least.min(read(&file)?);
        }
        Ok(least)
    };
    let (once, twice) = (least(path.cycles)?, least(2 * path.cycles)?);
    Ok((twice - once) / f64::from(path.cycles))
}

/// Runs `path` under callgrind, and returns the file with its functions.
///
/// # Errors
///
/// As [`count`].
pub fn profile(path: &Path) -> Fallible<PathBuf> {
    let file = std::env::temp_dir().join(format!("callgrind.out.{}", path.name));
    record(path, 2 * path.cycles, &file)?;
    Ok(file)
}

/// Starts new servers for each run, so that all runs begin alike. They are not under callgrind.
fn record(path: &Path, cycles: u32, file: &FilePath) -> Fallible {
    let servers = RedisSet::start(path.servers);
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(std::env::current_exe()?)
        .args([workload::VERB, path.name, &cycles.to_string()])
        .args(servers.urls())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let (status, said) = (output.status, String::from_utf8_lossy(&output.stderr));
    Err(format!("{} ended with {status}:\n{said}", path.name).into())
}

fn read(file: &FilePath) -> Fallible<f64> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(total(&text).ok_or_else(|| format!("{} has no total", file.display()))?)
}

/// The sum over all threads, which callgrind writes at the end.
fn total(text: &str) -> Option<f64> {
    let line = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("totals:"))?;
    line.trim().parse().ok()
}

/// The functions of `file` that take most themselves, as `callgrind_annotate` lists them.
///
/// # Errors
///
/// It is not there, or cannot read the file.
pub fn annotate(file: &FilePath) -> Fallible<String> {
    let output = Command::new("callgrind_annotate")
        .args(["--auto=no", "--threshold=100"])
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("callgrind_annotate: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.contains("file:function"))
        .skip(2)
        .filter(|line| !line.trim().is_empty())
        .take(SHOWN)
        .collect();
    if lines.is_empty() {
        let file = file.display();
        return Err(format!("callgrind_annotate said nothing of {file}").into());
    }
    Ok(lines.join("\n"))
}

const SHOWN: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_the_last_one() {
        let text = "summary: 7\nfn=(1)\n1 7\n\ntotals: 1234567\n";
        assert_eq!(total(text), Some(1_234_567.0));
        assert_eq!(total("events: Ir\n"), None);
    }
}
