use leasehold_instructions::{Fallible, Kind, Path, annotate, count, profile};

use crate::baseline::Baseline;
use crate::counts::{Counts, Verdict};
use crate::options::Options;

/// Counts the requested paths, and compares them with the recorded counts.
pub(crate) fn run(options: &Options) -> Fallible {
    if options.profile {
        return options.paths().into_iter().try_for_each(show_profile);
    }
    let baseline = Baseline::open()?;
    let (mut slower, mut unrecorded) = (Vec::new(), Vec::new());
    let mut updated = Counts::default();
    println!(
        "{:15} {:>13} {:>13}  {:>7}",
        "path", "instructions", "recorded", ""
    );
    for path in options.paths() {
        let mut counted = plausible(path, count(path, options.repeat)?)?;
        let mut verdict = baseline.judge(path, counted);
        if verdict == Some(Verdict::Slower) {
            counted = plausible(path, count(path, AGAIN)?)?;
            verdict = baseline.judge(path, counted);
        }
        println!("{}", line(path, counted, &baseline, verdict));
        match verdict {
            Some(Verdict::Slower) => slower.push(path.name),
            Some(Verdict::Unknown) => unrecorded.push(path.name),
            _ => {}
        }
        if path.kind == Kind::Guarded {
            updated.record(path.name, counted);
        }
    }
    if options.record {
        return baseline.write(&updated);
    }
    if let Some(why) = &baseline.incomparable {
        println!("NOT COMPARED: {why}");
    }
    if !unrecorded.is_empty() {
        let paths = unrecorded.join(", ");
        return Err(format!("no recorded count of {paths}: `--record` writes it").into());
    }
    if slower.is_empty() {
        return Ok(());
    }
    Err(format!(
        "more instructions than recorded: {}. `cargo xtask instructions --profile NAME` shows where; if \
         it has to be so, `--record` writes the new counts, and the commit says why",
        slower.join(", ")
    )
    .into())
}

/// How many runs decide about a path that seems slower.
const AGAIN: usize = 10;

fn show_profile(path: &Path) -> Fallible {
    let file = profile(path)?;
    println!("{}", annotate(&file)?);
    println!(
        "\ncallgrind_annotate --inclusive=yes --tree=both {}",
        file.display()
    );
    Ok(())
}

/// Refuses a count that no cycle of a client can have: the path did not run, or not for as many cycles as it should.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it lies between the two bounds"
)]
fn plausible(path: &Path, counted: f64) -> Fallible<u64> {
    match counted.round() {
        count if (LEAST..MOST).contains(&count) => Ok(count as u64),
        count => Err(format!(
            "{}: a count of {count} instructions for each cycle makes no sense; the path did not run as it should",
            path.name
        )
        .into()),
    }
}

/// Two allocations take more than this.
const LEAST: f64 = 100.0;
const MOST: f64 = 1e12;

fn line(path: &Path, counted: u64, baseline: &Baseline, verdict: Option<Verdict>) -> String {
    let recorded = baseline.counts.paths.get(path.name);
    let recorded = recorded.map_or_else(|| "–".into(), |entry| entry.instructions.to_string());
    let said = match verdict {
        None => "",
        Some(Verdict::Holds) => "holds",
        Some(Verdict::Slower) => "SLOWER",
        Some(Verdict::Faster) => "faster: record it",
        Some(Verdict::Unknown) => "not recorded",
    };
    format!(
        "{:15} {counted:>13} {recorded:>13}  {said:17} {}",
        path.name, path.what
    )
}

#[cfg(test)]
mod tests {
    use leasehold_instructions::PATHS;

    use super::*;

    #[test]
    fn count_without_work_is_refused() {
        let path = &PATHS[0];
        assert_eq!(plausible(path, 4990.4).unwrap(), 4990);
        for wrong in [0.0, -3.0, 99.0, f64::NAN, f64::INFINITY] {
            let text = plausible(path, wrong).unwrap_err().to_string();
            assert!(text.starts_with(path.name), "{text}");
        }
    }
}
