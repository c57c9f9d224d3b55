/// Replaces the output that differs from run to run with fixed text for the pictures. All other text is
/// what the program wrote.
///
/// There is one for each scene, so that a process has the same number in all panes.
#[derive(Debug, Default)]
pub(crate) struct Redactions {
    processes: Vec<String>,
}

impl Redactions {
    /// Replaces the varying parts of `written`. Control sequences for the terminal stay in place.
    pub(crate) fn apply(&mut self, written: &str) -> String {
        let mut text = self.put_processes_into(written);
        for rule in &RULES {
            text = rule.apply(&text);
        }
        text
    }

    /// `(pid 27182 on vm)`: process ids by the order in which they are seen, and one machine.
    fn put_processes_into(&mut self, written: &str) -> String {
        const BEFORE: &str = "(pid ";
        let mut text = String::new();
        let mut rest = written;
        while let Some(at) = rest.find(BEFORE) {
            let (done, found) = rest.split_at(at + BEFORE.len());
            text += done;
            rest = found;
            let digits = Varying::Digits.length(rest);
            let Some(host) = rest[digits..].strip_prefix(" on ") else {
                continue;
            };
            let Some(end) = host.find(')') else {
                continue;
            };
            text += &format!("{} on {HOST}", self.number_of(&rest[..digits]));
            rest = &host[end..];
        }
        text + rest
    }

    fn number_of(&mut self, pid: &str) -> usize {
        let known = self.processes.iter().position(|known| known == pid);
        let place = known.unwrap_or_else(|| {
            self.processes.push(pid.to_owned());
            self.processes.len() - 1
        });
        FIRST_PID + place * 42
    }
}

const HOST: &str = "ci";
const FIRST_PID: usize = 4711;

/// A varying text between two fixed ones.
struct Rule {
    /// What it is, for the tests' messages.
    name: &'static str,
    before: &'static str,
    varying: Varying,
    after: &'static str,
    replacement: &'static str,
}

impl Rule {
    const fn new(
        name: &'static str,
        (before, varying, after): (&'static str, Varying, &'static str),
        replacement: &'static str,
    ) -> Self {
        Self {
            name,
            before,
            varying,
            after,
            replacement,
        }
    }

    fn apply(&self, written: &str) -> String {
        let mut text = String::new();
        let mut rest = written;
        while let Some(at) = rest.find(self.before) {
            let (done, found) = rest.split_at(at + self.before.len());
            text += done;
            let length = self.varying.length(found);
            rest = if length > 0 && found[length..].starts_with(self.after) {
                text += self.replacement;
                &found[length..]
            } else {
                found
            };
        }
        text + rest
    }
}

/// The shape of what varies.
#[derive(Clone, Copy, Debug)]
enum Varying {
    Digits,
    /// Anything up to a blank or a comma.
    Word,
    /// `27s 352ms`, `44.8µs`.
    Span,
}

impl Varying {
    /// Returns the length of the prefix of `text` with this shape; 0 if there is none.
    fn length(self, text: &str) -> usize {
        match self {
            Self::Digits => extent(text, |c| c.is_ascii_digit()),
            Self::Word => extent(text, |c| !c.is_whitespace() && c != ','),
            Self::Span => span(text),
        }
    }
}

fn extent(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

/// Numbers with their units, one blank between two of them.
fn span(text: &str) -> usize {
    let mut length = 0;
    loop {
        let rest = &text[length..];
        let blank = usize::from(length > 0 && rest.starts_with(' '));
        let number = extent(&rest[blank..], |c| c.is_ascii_digit() || c == '.');
        let unit = extent(&rest[blank + number..], char::is_alphabetic);
        if number == 0 || unit == 0 {
            return length;
        }
        length += blank + number + unit;
    }
}

const RULES: [Rule; 12] = [
    Rule::new(
        "when the holder took the lock",
        (" since ", Varying::Word, ""),
        "2026-11-22T12:19:48Z",
    ),
    Rule::new(
        "what is left of a lease",
        ("expires in ", Varying::Span, " unless renewed"),
        "9s",
    ),
    Rule::new(
        "a fence",
        (" fence ", Varying::Digits, ""),
        "1795349988000000",
    ),
    Rule::new(
        "the start of a hold in a table",
        ("  20", Varying::Word, "  "),
        "26-11-22T12:19:48Z",
    ),
    Rule::new(
        "a fence in a table",
        ("48Z  ", Varying::Digits, "  "),
        "1795349988000000",
    ),
    Rule::new(
        "the end of a lease in a table",
        ("1795349988000000  ", Varying::Span, "  "),
        "9s",
    ),
    Rule::new(
        "how long a wait goes on",
        ("waiting for ", Varying::Span, " for lock "),
        "3s",
    ),
    Rule::new(
        "how long a waiter is queued",
        ("  exclusive  ", Varying::Span, "  "),
        "3s",
    ),
    Rule::new(
        "a server's version",
        ("version     ", Varying::Word, ""),
        "7.0.15",
    ),
    Rule::new(
        "a median round trip",
        ("round_trip  median ", Varying::Span, ", max "),
        "93µs",
    ),
    Rule::new(
        "the longest round trip",
        (", max ", Varying::Span, " (9 samples)"),
        "204µs",
    ),
    Rule::new(
        "how long a server runs",
        ("runs for ", Varying::Span, ";"),
        "12days 3h",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// For each rule what is written, and what is drawn.
    const EXAMPLES: [(&str, &str, &str); RULES.len()] = [
        (
            "when the holder took the lock",
            "x since 2025-01-02T03:04:05Z, fence",
            "x since 2026-11-22T12:19:48Z, fence",
        ),
        (
            "what is left of a lease",
            "Z, expires in 7s unless renewed",
            "Z, expires in 9s unless renewed",
        ),
        ("a fence", ", fence 17, 3s", ", fence 1795349988000000, 3s"),
        (
            "the start of a hold in a table",
            "x  2025-01-02T03:04:05Z  17",
            "x  2026-11-22T12:19:48Z  17",
        ),
        (
            "a fence in a table",
            "12:19:48Z  17  ",
            "12:19:48Z  1795349988000000  ",
        ),
        (
            "the end of a lease in a table",
            "  1795349988000000  7s          leasehold",
            "  1795349988000000  9s          leasehold",
        ),
        (
            "how long a wait goes on",
            "waiting for 1m 2s for lock \"x\"",
            "waiting for 3s for lock \"x\"",
        ),
        (
            "how long a waiter is queued",
            "1      exclusive  1s       leasehold",
            "1      exclusive  3s       leasehold",
        ),
        (
            "a server's version",
            "\x1b[0m version     8.2.1\r\n",
            "\x1b[0m version     7.0.15\r\n",
        ),
        (
            "a median round trip",
            "round_trip  median 1.2ms, max 3.4ms (8 samples)",
            "round_trip  median 93µs, max 3.4ms (8 samples)",
        ),
        (
            "the longest round trip",
            ", max 3.4ms (9 samples)",
            ", max 204µs (9 samples)",
        ),
        (
            "how long a server runs",
            "runs for 1s; may",
            "runs for 12days 3h; may",
        ),
    ];

    #[test]
    fn each_redaction_is_applied_once() {
        for (rule, (name, written, drawn)) in RULES.iter().zip(EXAMPLES) {
            assert_eq!(rule.name, name);
            assert_eq!(rule.apply(written), drawn, "{name}");
            assert_eq!(rule.apply(drawn), drawn, "{name}");
            let twice = format!("{written} {written}");
            assert_eq!(rule.apply(&twice), format!("{drawn} {drawn}"), "{name}");
        }
    }

    #[test]
    fn what_only_looks_alike_is_left_alone() {
        for text in [
            "waiting for lock \"x\"",
            "5 of 5 servers have a vote, 3 needed",
            "runs for ever; may",
            "fence unknown",
            "its clock, 250ms are allowed",
            "version    ",
            "(pid 12 of vm)",
            "(pid 12 on vm",
        ] {
            assert_eq!(Redactions::default().apply(text), text);
        }
    }

    #[test]
    fn process_has_one_number_in_all_panes() {
        let mut scene = Redactions::default();
        let first = scene.apply("held by a (pid 900 on vm) and b (pid 7 on vm), or c");
        assert_eq!(
            first,
            "held by a (pid 4711 on ci) and b (pid 4753 on ci), or c"
        );
        assert_eq!(scene.apply("(pid 7 on long.name)"), "(pid 4753 on ci)");
        assert_eq!(
            Redactions::default().apply("(pid 7 on vm)"),
            "(pid 4711 on ci)"
        );
    }

    #[test]
    fn a_span_ends_where_its_last_unit_does() {
        for (text, length) in [
            ("1s for", 2),
            ("27s 352ms left", 9),
            ("44.8µs, at", 7),
            ("3 of 5", 0),
            ("s", 0),
        ] {
            assert_eq!(Varying::Span.length(text), length, "{text}");
        }
    }
}
