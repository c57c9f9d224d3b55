//! The manual pages of sections 5 and 7, which are pages of `docs` in another form.

use std::process::Command;

use super::{Folder, make_anew, read, write};
use crate::step::answer;

/// A manual page, and the page of `docs` that it is made from.
struct Page {
    name: &'static str,
    section: u8,
    source: &'static str,
    /// What `apropos` shows.
    purpose: &'static str,
}

const PAGES: [Page; 4] = [
    Page {
        name: "leasehold.toml",
        section: 5,
        source: "configuration.md",
        purpose: "configuration of leasehold, and the addresses of its stores",
    },
    Page {
        name: "leasehold-json",
        section: 5,
        source: "json.md",
        purpose: "the JSON that leasehold prints",
    },
    Page {
        name: "leasehold",
        section: 7,
        source: "commands.md",
        purpose: "the commands of leasehold, with examples and exit codes",
    },
    Page {
        name: "leasehold-secrets",
        section: 7,
        source: "secrets.md",
        purpose: "passwords and certificates of leasehold",
    },
];

/// Writes the pages into the folders of their sections.
pub(super) fn write_all(folder: &Folder) -> Result<(), String> {
    for section in ["man5", "man7"] {
        make_anew(&folder.pages().join(section))?;
    }
    PAGES.iter().try_for_each(|page| {
        let Page { name, section, .. } = page;
        let source = folder.documents().join("docs").join(page.source);
        let input = folder.path.join("manual.md");
        write(&input, &page.markdown(&read(&source)?))?;
        let mut lowdown = Command::new("lowdown");
        lowdown
            .args(["-s", "-Tman", "--out-no-smarty", "--nroff-nolinks"])
            .args(["-m", &format!("title: {name}")])
            .args(["-m", &format!("section: {section}")])
            .args(["-m", &format!("source: leasehold {}", folder.version)])
            .arg(&input);
        let manual = answer(&mut lowdown);
        let manual = manual.ok_or_else(|| format!("lowdown failed on {}", source.display()))?;
        // A line between a table and the text after it.
        let manual = manual.replace("\n.TE\n", "\n.TE\n.sp\n");
        let path = format!("man{section}/{name}.{section}");
        write(&folder.pages().join(path), &(manual + "\n"))
    })
}

impl Page {
    /// Returns `text` with the sections that each manual page has, and without its title and pictures.
    fn markdown(&self, text: &str) -> String {
        let Self { name, purpose, .. } = self;
        let mut manual = format!("# NAME\n\n{name} - {purpose}\n\n# DESCRIPTION\n");
        let mut is_code = false;
        for line in text.lines().skip(1) {
            is_code ^= line.starts_with("```");
            // A manual page has two levels of headings.
            let line = match line.strip_prefix('#') {
                Some(line) if !is_code => line,
                _ => line,
            };
            if !line.starts_with("![") {
                manual += line;
                manual.push('\n');
            }
        }
        manual
            + "\n# SEE ALSO\n\nleasehold(1), which has all environment variables and exit codes, \
               and the pages in /usr/share/doc/leasehold/docs\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_raised_outside_of_code() {
        let page = "# Title\n\na\n\n![b](c.svg)\n\n## D\n\n```sh\n# e\n```\n";
        let manual = PAGES[0].markdown(page);
        let (_, rest) = manual.split_once("# DESCRIPTION\n").unwrap();
        assert!(
            rest.starts_with("\na\n\n\n# D\n\n```sh\n# e\n```\n"),
            "{rest}"
        );
    }
}
