use std::collections::BTreeSet;

use super::Offence;
use super::source::Source;

/// A script begins with a header that says what each of its keys and arguments is: its callers
/// see positions only.
pub(crate) fn check(tree: &[Source]) -> Vec<Offence> {
    tree.iter()
        .filter(|source| source.path.ends_with(".lua"))
        .flat_map(script)
        .collect()
}

fn script(source: &Source) -> Vec<Offence> {
    let header: String = source
        .text
        .lines()
        .take_while(|line| line.starts_with("--"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let body = &source.text[header.len().min(source.text.len())..];
    let told = positions(&header);
    let mut offences: Vec<Offence> = positions(body)
        .difference(&told)
        .map(|position| {
            let rule = format!("{position} is used and not named in the script's header");
            Offence::at(&source.path, 0, rule)
        })
        .collect();
    for table in ["KEYS", "ARGV"] {
        if !header.contains(table) {
            let rule =
                format!("the script's header does not name its {table} (or that it has none)");
            offences.push(Offence::at(&source.path, 1, rule));
        }
    }
    offences
}

/// `KEYS[1]`, `ARGV[2]`…, those with a number.
fn positions(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for table in ["KEYS[", "ARGV["] {
        for (at, _) in text.match_indices(table) {
            let inner = text[at + table.len()..]
                .split(']')
                .next()
                .unwrap_or_default();
            let inner = inner.trim();
            if !inner.is_empty() && inner.bytes().all(|byte| byte.is_ascii_digit()) {
                found.insert(format!("{table}{inner}]"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> usize {
        check(&[Source::new("crates/a/src/lua/x.lua", text.into())]).len()
    }

    #[test]
    fn a_script_without_a_header_is_refused() {
        assert_eq!(rules("return redis.call('GET', KEYS[1])\n"), 3);
        assert_eq!(rules(""), 2);
    }

    #[test]
    fn each_position_has_a_name_in_the_header() {
        let header = "-- Frees the lock.\n-- KEYS[1] the lock\n-- ARGV[1] the owner\n";
        let body = "if redis.call('GET', KEYS[1]) == ARGV[1] then return 1 end\n";
        assert_eq!(rules(&format!("{header}{body}")), 0);
        assert_eq!(rules(&format!("{header}{body}return ARGV[2]\n")), 1);
        assert_eq!(
            rules(&format!("{header}for i = 2, #ARGV do f(ARGV[i]) end\n")),
            0
        );
    }

    #[test]
    fn a_comment_further_down_is_no_header() {
        let late = "return KEYS[1]\n-- KEYS[1] the lock, ARGV none\n";
        assert_eq!(rules(late), 3);
    }
}
