//! One known bug.

/// A bug that a few altered lines put back.
#[derive(Debug)]
pub(super) struct Bug {
    pub(super) name: &'static str,
    /// The suite of the contract tests whose random programs run.
    pub(super) suite: &'static str,
    pub(super) breaks: &'static str,
    /// The altered file, in the workspace.
    pub(super) file: &'static str,
    /// Occurs exactly once in the file.
    pub(super) old: &'static str,
    pub(super) new: &'static str,
}

impl Bug {
    /// Returns the text of the file with the bug.
    pub(super) fn altered(&self, text: &str) -> Result<String, String> {
        match text.matches(self.old).count() {
            1 => Ok(text.replacen(self.old, self.new, 1)),
            count => Err(format!(
                "{} no longer applies: its old text occurs {count} times in {}",
                self.name, self.file
            )),
        }
    }

    /// Returns the crate whose contract tests have the suite.
    pub(super) fn package(&self) -> Result<&'static str, String> {
        let store = self.suite.split('_').next().unwrap_or_default();
        let packages = [
            ("memory", "leasehold"),
            ("file", "leasehold-file"),
            ("redis", "leasehold-redis"),
            ("postgres", "leasehold-postgres"),
            ("etcd", "leasehold-etcd"),
            ("zookeeper", "leasehold-zookeeper"),
        ];
        let package = packages.iter().find(|(name, _)| *name == store);
        package
            .map(|(_, package)| *package)
            .ok_or_else(|| format!("{}: no crate has the suite {:?}", self.name, self.suite))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUG: Bug = Bug {
        name: "example",
        suite: "redis_quorum",
        breaks: "a promise",
        file: "a.rs",
        old: "a < b",
        new: "a <= b",
    };

    #[test]
    fn old_text_must_occur_once() {
        assert_eq!(BUG.altered("if a < b {").unwrap(), "if a <= b {");
        for text in ["", "a < b, a < b"] {
            let error = BUG.altered(text).unwrap_err();
            assert!(error.contains("no longer applies"), "{error}");
        }
    }

    #[test]
    fn suite_names_its_crate() {
        assert_eq!(BUG.package(), Ok("leasehold-redis"));
        let unknown = Bug {
            suite: "paper",
            ..BUG
        };
        assert!(unknown.package().is_err());
    }
}
