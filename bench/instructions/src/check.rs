use std::fs;
use std::path::PathBuf;

use crate::callgrind;
use crate::counts::{Counts, Verdict};
use crate::options::Options;
use crate::path::{Kind, Path};

/// Counts what was asked for, and holds it against what is recorded.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    if options.profile {
        return options.paths.iter().try_for_each(|path| profile(path));
    }
    let book = Book::open()?;
    let mut slower = Vec::new();
    let mut updated = Counts::default();
    println!(
        "{:15} {:>13} {:>13}  {:>7}",
        "path", "instructions", "recorded", ""
    );
    for path in &options.paths {
        let counted = repeatedly(path, options.repeat)?;
        let verdict = book.judge(path, counted.median);
        println!("{}", line(path, &counted, &book, verdict));
        if verdict == Some(Verdict::Slower) {
            slower.push(path.name);
        }
        if path.kind == Kind::Guarded {
            updated.record(path.name, counted.median);
        }
    }
    if options.record {
        return book.write(&updated);
    }
    if let Some(why) = &book.incomparable {
        println!("NOT COMPARED: {why}");
    }
    if slower.is_empty() {
        return Ok(());
    }
    Err(format!(
        "more instructions than recorded: {}. `cargo xtask instructions --profile NAME` shows where; if \
         it has to be so, `--record` writes the new counts, and the commit says why",
        slower.join(", ")
    ))
}

fn profile(path: &Path) -> Result<(), String> {
    let file = callgrind::profile(path)?;
    println!("{}", callgrind::annotate(&file)?);
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
fn repeatedly(path: &Path, times: usize) -> Result<Counted, String> {
    let mut counts = Vec::new();
    for _ in 0..times {
        counts.push(callgrind::count(path)?.round() as u64);
    }
    counts.sort_unstable();
    match (counts.first(), counts.get(counts.len() / 2), counts.last()) {
        (Some(&least), Some(&median), Some(&most)) => Ok(Counted {
            median,
            least,
            most,
        }),
        _ => Err(format!("{} was not counted", path.name)),
    }
}

fn line(path: &Path, counted: &Counted, book: &Book, verdict: Option<Verdict>) -> String {
    let recorded = book.counts.paths.get(path.name);
    let recorded = recorded.map_or_else(|| "–".into(), |entry| entry.instructions.to_string());
    let said = match verdict {
        None => "",
        Some(Verdict::Holds) => "holds",
        Some(Verdict::Slower) => "SLOWER",
        Some(Verdict::Faster) => "faster: record it",
        Some(Verdict::Unknown) => "not recorded",
    };
    let Counted {
        median,
        least,
        most,
    } = counted;
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

/// The file with the recorded counts.
#[derive(Debug)]
struct Book {
    file: PathBuf,
    counts: Counts,
    rustc: String,
    /// Why nothing can be said about a difference.
    incomparable: Option<String>,
}

impl Book {
    fn open() -> Result<Self, String> {
        let file = variable("LEASEHOLD_INSTRUCTIONS_COUNTS").map(PathBuf::from)?;
        let rustc = variable("LEASEHOLD_INSTRUCTIONS_RUSTC")?;
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("{}: {error}", file.display())),
        };
        let counts =
            Counts::parse(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        let incomparable = (counts.rustc != rustc)
            .then(|| format!("recorded with {:?}, and this is {rustc:?}", counts.rustc));
        Ok(Self {
            file,
            counts,
            rustc,
            incomparable,
        })
    }

    /// `None` where there is nothing to judge.
    fn judge(&self, path: &Path, counted: u64) -> Option<Verdict> {
        let judged = self.incomparable.is_none() && path.kind == Kind::Guarded;
        judged.then(|| self.counts.judge(path.name, counted))
    }

    /// What was not counted now stays as it was, unless another compiler had made it.
    fn write(mut self, updated: &Counts) -> Result<(), String> {
        if self.incomparable.is_some() {
            self.counts
                .paths
                .retain(|name, _| updated.paths.contains_key(name));
        }
        for (name, entry) in &updated.paths {
            self.counts.record(name, entry.instructions);
        }
        self.counts.rustc = self.rustc;
        let failed = |error: std::io::Error| format!("{}: {error}", self.file.display());
        fs::write(&self.file, self.counts.format()).map_err(failed)?;
        println!("recorded in {}", self.file.display());
        Ok(())
    }
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name)
        .map_err(|_| format!("{name} is not set: start it as `cargo xtask instructions`"))
}
