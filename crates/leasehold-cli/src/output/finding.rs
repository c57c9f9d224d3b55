/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The id of the check, stable for programs.
    pub(crate) check: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) found: String,
    /// Why it matters and what to do; `None` if all is well.
    pub(crate) advice: Option<Advice>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Advice {
    pub(crate) why: String,
    /// A command or a line of configuration, if there is one.
    pub(crate) remedy: String,
}

/// How good a result is, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Green,
    /// Locks are safe. Something could be better, or could not be checked.
    Yellow,
    /// Locks cannot be acquired, or are not safe.
    Red,
}

impl Verdict {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Yellow => "yellow",
            Self::Red => "red",
        }
    }
}

impl Finding {
    pub(crate) fn green(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            check,
            verdict: Verdict::Green,
            found: found.into(),
            advice: None,
        }
    }

    pub(crate) fn yellow(
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

    pub(crate) fn red(
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
