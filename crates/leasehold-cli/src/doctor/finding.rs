/// What one check came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// The check's id, which stays as it is for programs.
    pub(super) check: &'static str,
    pub(super) verdict: Verdict,
    pub(super) found: String,
    /// Why it matters, and what is to be done, unless all is well.
    pub(super) advice: Option<Advice>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Advice {
    pub(super) why: String,
    /// A command or a line of configuration, where there is one.
    pub(super) remedy: String,
}

/// How well it is, from well to ill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Green,
    /// Locks are what they promise to be; something could be better, or is not known.
    Yellow,
    /// Locks cannot be had, or are not what they promise to be.
    Red,
}

impl Verdict {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Yellow => "yellow",
            Self::Red => "red",
        }
    }
}

impl Finding {
    pub(super) fn green(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            check,
            verdict: Verdict::Green,
            found: found.into(),
            advice: None,
        }
    }

    pub(super) fn yellow(
        check: &'static str,
        found: impl Into<String>,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let advice = Advice {
            why: why.into(),
            remedy: remedy.into(),
        };
        Self {
            verdict: Verdict::Yellow,
            advice: Some(advice),
            ..Self::green(check, found)
        }
    }

    pub(super) fn red(
        check: &'static str,
        found: impl Into<String>,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::Red,
            ..Self::yellow(check, found, why, remedy)
        }
    }
}
