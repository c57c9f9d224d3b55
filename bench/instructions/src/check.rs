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
    let mut slower = Vec::new();
    let mut updated = Counts::default();
    println!(
        "{:15} {:>13} {:>13}  {:>7}",
        "path", "instructions", "recorded", ""
    );
    for path in options.paths() {
        let mut counted = repeatedly(path, options.repeat)?;
        let mut verdict = baseline.judge(path, counted.median);
        if verdict == Some(Verdict::Slower) {
            // Chance makes a count greater now and then, for example when threads meet in another order.
            // The work of the code itself recurs in every count.
            counted = repeatedly(path, AGAIN)?;
            verdict = baseline.judge(path, counted.least);
        }
        println!("{}", line(path, &counted, &baseline, verdict));
        if verdict == Some(Verdict::Slower) {
            slower.push(path.name);
        }
        if path.kind == Kind::Guarded {
            updated.record(path.name, counted.median);
        }
    }
    if options.record {
        return baseline.write(&updated);
    }
    if let Some(why) = &baseline.incomparable {
        println!("NOT COMPARED: {why}");
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

/// How often a path that seems slower is counted again.
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

/// The counts of one path.
#[derive(Debug, PartialEq, Eq)]
struct Counted {
    median: u64,
    least: u64,
    most: u64,
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "more cycles take more instructions, and not 2^63 of them"
)]
fn repeatedly(path: &Path, times: usize) -> Fallible<Counted> {
    let mut counts = Vec::new();
    for _ in 0..times {
        counts.push(count(path)?.round() as u64);
    }
    counts.sort_unstable();
    match (counts.first(), counts.get(counts.len() / 2), counts.last()) {
        (Some(&least), Some(&median), Some(&most)) => Ok(Counted {
            median,
            least,
            most,
        }),
        _ => Err(format!("{} was not counted", path.name).into()),
    }
}

fn line(path: &Path, counted: &Counted, baseline: &Baseline, verdict: Option<Verdict>) -> String {
    let recorded = baseline.counts.paths.get(path.name);
    let recorded = recorded.map_or_else(|| "–".into(), |entry| entry.instructions.to_string());
    let said = match verdict {
        None => "",
        Some(Verdict::Holds) => "holds",
        Some(Verdict::Slower) => "SLOWER",
        Some(Verdict::Faster) => "faster: record it",
        Some(Verdict::Unknown) => "not recorded",
    };
    let (median, least, most) = (counted.median, counted.least, counted.most);
    let spread = if least == most {
        String::new()
    } else {
        format!(" ({least}–{most})")
    };
    format!(
        "{:15} {median:>13} {recorded:>13}  {said:17} {}{spread}",
        path.name, path.what
    )
}
