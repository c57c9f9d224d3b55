use std::fs;
use std::path::PathBuf;

use leasehold_instructions::{Fallible, Kind, Path};

use crate::counts::{Counts, Verdict};

/// The file with the recorded counts.
#[derive(Debug)]
pub(crate) struct Baseline {
    file: PathBuf,
    pub(crate) counts: Counts,
    rustc: String,
    /// Why nothing can be said about a difference.
    pub(crate) incomparable: Option<String>,
}

impl Baseline {
    pub(crate) fn open() -> Fallible<Self> {
        let file = variable("LEASEHOLD_INSTRUCTIONS_COUNTS").map(PathBuf::from)?;
        let rustc = variable("LEASEHOLD_INSTRUCTIONS_RUSTC")?;
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("{}: {error}", file.display()).into()),
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
    pub(crate) fn judge(&self, path: &Path, counted: u64) -> Option<Verdict> {
        let judged = self.incomparable.is_none() && path.kind == Kind::Guarded;
        judged.then(|| self.counts.judge(path.name, counted))
    }

    /// What was not counted now stays as it was, unless another compiler had made it.
    pub(crate) fn write(mut self, updated: &Counts) -> Fallible {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_of_ours_is_recorded_and_no_other() {
        let counts = Counts::parse(include_str!("../counts.toml")).unwrap();
        let guarded = leasehold_instructions::PATHS
            .iter()
            .filter(|path| path.kind == Kind::Guarded);
        let mut names: Vec<&str> = guarded.map(|path| path.name).collect();
        names.sort_unstable();
        assert!(counts.paths.keys().eq(names.iter()));
    }
}
