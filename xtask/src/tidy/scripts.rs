use std::collections::BTreeSet;

use super::Offence;
use super::source::{Source, has_word};

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
    if header.is_empty() {
        let rule = "the script has no header that says what it does, with which KEYS and ARGV";
        return vec![Offence::at(&source.path, 1, rule)];
    }
    let body: Vec<&str> = source.text[header.len().min(source.text.len())..]
        .lines()
        .map(|line| line.split("--").next().unwrap_or_default())
        .collect();
    let body = body.join("\n");
    let mut offences = Vec::new();
    for table in TABLES {
        let told = told(&header, table);
        if has_word(&body, table) && told.is_none() {
            let rule = format!("the script uses {table}, which its header does not name");
            offences.push(Offence::at(&source.path, 1, rule));
        }
        let told = told.unwrap_or_default();
        for position in positions(&body, table) {
            if !has_word(told, &position) {
                let rule = format!("{table}[{position}] is not named in the script's header");
                offences.push(Offence::at(&source.path, 1, rule));
            }
        }
    }
    offences
}

const TABLES: [&str; 2] = ["KEYS", "ARGV"];

/// What the header says of `table`: from its first mention on, up to the other one's.
fn told<'a>(header: &'a str, table: &str) -> Option<&'a str> {
    let (_, after) = header.split_once(table)?;
    let other = TABLES.into_iter().find(|other| *other != table)?;
    after.split(other).next()
}

/// The numbers `1` and `2` of `KEYS[1]` and `KEYS[2]`; computed positions are not among them.
fn positions(body: &str, table: &str) -> BTreeSet<String> {
    let opening = format!("{table}[");
    body.split(&opening)
        .skip(1)
        .filter_map(|after| after.split(']').next())
        .map(|position| position.trim().to_owned())
        .filter(|position| !position.is_empty() && position.bytes().all(|b| b.is_ascii_digit()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> usize {
        check(&[Source::new("crates/a/src/lua/x.lua", text.into())]).len()
    }

    #[test]
    fn a_script_without_a_header_is_refused() {
        assert_eq!(rules("return redis.call('GET', KEYS[1])\n"), 1);
        assert_eq!(rules("return 1\n-- KEYS 1 the lock\n"), 1);
    }

    #[test]
    fn a_table_that_is_used_is_named() {
        assert_eq!(rules("-- Frees the lock.\nreturn KEYS[i]\n"), 1);
        assert_eq!(rules("-- KEYS three for each lease\nreturn KEYS[i]\n"), 0);
        assert_eq!(
            rules("-- A part of other scripts.\nlocal x = 1 -- not KEYS\n"),
            0
        );
    }

    #[test]
    fn each_position_is_named() {
        let body = "if redis.call('GET', KEYS[1]) == ARGV[2] then return 1 end\n";
        assert_eq!(
            rules(&format!("-- KEYS  1 lock\n-- ARGV  1 ttl  2 owner\n{body}")),
            0
        );
        assert_eq!(
            rules(&format!(
                "-- KEYS[1] lock\n-- ARGV[1] ttl, ARGV[2] owner\n{body}"
            )),
            0
        );
        assert_eq!(
            rules(&format!("-- KEYS  1 lock  2 x\n-- ARGV  1 ttl\n{body}")),
            1
        );
        assert_eq!(
            rules(&format!("-- KEYS none\n-- ARGV  1 ttl  2 owner\n{body}")),
            1
        );
    }
}
