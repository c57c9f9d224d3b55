use std::path::Path;

/// A defect that other lock libraries have, or that the model of the protocol found: how it would look
/// here, and the test that fails with it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Mutant {
    pub(crate) name: String,
    /// The defect, in a sentence.
    pub(crate) defect: String,
    /// The libraries or documents with this defect.
    pub(crate) seen: String,
    /// The invariants or obligations it breaks.
    pub(crate) breaks: String,
    /// The file it would be in.
    pub(crate) file: String,
    /// The arguments of `cargo test`.
    pub(crate) run: String,
    /// The test that must fail.
    pub(crate) test: String,
    /// The correct code, which occurs in the file exactly once.
    pub(crate) right: String,
    /// The code with the defect.
    pub(crate) wrong: String,
}

impl Mutant {
    /// Reads a mutant: lines `name: value`, then the right and the wrong code, each after a line
    /// that says so.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        Self::parse(&name, &text).map_err(|what| format!("mutant {name}: {what}"))
    }

    fn parse(name: &str, text: &str) -> Result<Self, String> {
        let (head, code) = text
            .split_once(RIGHT)
            .ok_or_else(|| format!("no line {:?}", RIGHT.trim()))?;
        let (right, wrong) = code
            .split_once(WRONG)
            .ok_or_else(|| format!("no line {:?}", WRONG.trim()))?;
        let field = |key: &str| {
            let line = head
                .lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
            line.map(str::to_owned)
                .ok_or_else(|| format!("no line {key:?}"))
        };
        Ok(Self {
            name: name.to_owned(),
            defect: field("defect")?,
            seen: field("seen")?,
            breaks: field("breaks")?,
            file: field("file")?,
            run: field("run")?,
            test: field("test")?,
            right: right.to_owned(),
            wrong: wrong.to_owned(),
        })
    }

    /// Returns the path of the mutant, as git names it.
    pub(crate) fn path(&self) -> String {
        format!("mutants/{}.txt", self.name)
    }

    /// Returns `text` with the defect.
    pub(crate) fn apply(&self, text: &str) -> Result<String, String> {
        match text.matches(&self.right).count() {
            1 => Ok(text.replacen(&self.right, &self.wrong, 1)),
            0 => Err(format!("the correct code is no longer in {}", self.file)),
            times => Err(format!(
                "the correct code is in {} {times} times",
                self.file
            )),
        }
    }
}

const RIGHT: &str = "\n--- right\n";
const WRONG: &str = "--- wrong\n";

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "defect: d\nseen: s\nbreaks: I1\nfile: f\nrun: -p x\ntest: t\n\
                        --- right\nlet a = 1;\n--- wrong\nlet a = 2;\n";

    #[test]
    fn defect_replaces_the_only_place() {
        let mutant = Mutant::parse("m", TEXT).unwrap();
        assert_eq!(
            mutant.apply("x\nlet a = 1;\ny").unwrap(),
            "x\nlet a = 2;\ny"
        );
        assert!(mutant.apply("x").is_err());
        assert!(mutant.apply("let a = 1;\nlet a = 1;\n").is_err());
    }

    #[test]
    fn missing_line_is_named() {
        let error = Mutant::parse("m", &TEXT.replace("breaks: I1\n", "")).unwrap_err();
        assert_eq!(error, "no line \"breaks\"");
    }
}
