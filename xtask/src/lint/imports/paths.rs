use super::tokens::shipped;

/// A path that a file names, such as `crate::lease::Renewer`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NamedPath {
    pub(super) words: Vec<String>,
    /// The name that `use` gives it. `None` without `use`, and for all names of a module.
    pub(super) name: Option<String>,
}

/// Returns the paths that `code` names, except for those that only tests name.
pub(super) fn paths(code: &str) -> Vec<NamedPath> {
    let tokens = shipped(code);
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let (mut found, mut rest) = (Vec::new(), tokens.as_slice());
    while let [first, after @ ..] = rest {
        rest = match *first {
            "use" => tree(&[], after, &mut found),
            _ => path(rest, &mut found),
        };
    }
    found
}

/// Reads a path at the beginning, or anything else, and returns what follows it.
fn path<'a, 'b>(tokens: &'a [&'b str], found: &mut Vec<NamedPath>) -> &'a [&'b str] {
    let (mut words, mut rest) = (vec![tokens[0]], &tokens[1..]);
    while let ["::", word, after @ ..] = rest
        && word.starts_with(|c: char| c.is_alphanumeric() || c == '_')
    {
        words.push(word);
        rest = after;
    }
    if words.len() > 1 {
        found.push(NamedPath {
            words: owned(&words),
            name: None,
        });
    }
    rest
}

/// Reads a tree of `use` below `prefix`, and returns what follows it.
fn tree<'a, 'b>(
    prefix: &[&'b str],
    tokens: &'a [&'b str],
    found: &mut Vec<NamedPath>,
) -> &'a [&'b str] {
    let (mut words, mut rest) = (prefix.to_vec(), tokens);
    loop {
        rest = match rest {
            ["{", after @ ..] => return branches(&words, after, found),
            ["as", name, after @ ..] => {
                add(&words, Some(name), found);
                return after;
            }
            [] | ["," | "}" | ";", ..] => {
                add(&words, words.last().copied(), found);
                return rest;
            }
            ["::", after @ ..] => after,
            // The module above, under its own name.
            ["self", after @ ..] if !words.is_empty() => after,
            ["*", after @ ..] => {
                add(&words, None, found);
                return after;
            }
            [word, after @ ..] => {
                words.push(word);
                after
            }
        };
    }
}

/// Reads the trees in braces, and returns what follows them.
fn branches<'a, 'b>(
    prefix: &[&'b str],
    tokens: &'a [&'b str],
    found: &mut Vec<NamedPath>,
) -> &'a [&'b str] {
    let mut rest = tokens;
    loop {
        rest = match rest {
            ["}", after @ ..] => return after,
            [] | [";", ..] => return rest,
            [",", after @ ..] => after,
            _ => tree(prefix, rest, found),
        };
    }
}

fn add(words: &[&str], name: Option<&str>, found: &mut Vec<NamedPath>) {
    found.push(NamedPath {
        words: owned(words),
        name: name.map(str::to_owned),
    });
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(code: &str) -> Vec<(String, Option<String>)> {
        let paths = paths(code).into_iter();
        paths
            .map(|path| (path.words.join("::"), path.name))
            .collect()
    }

    fn with(path: &str, name: &str) -> (String, Option<String>) {
        (path.into(), (!name.is_empty()).then(|| name.into()))
    }

    #[test]
    fn trees_of_use_are_read() {
        let code = "
            pub(crate) use crate::a::{self, b::{C, D as E}, f::*};
            use super::g; use h as i;
        ";
        let expected = [
            with("crate::a", "a"),
            with("crate::a::b::C", "C"),
            with("crate::a::b::D", "E"),
            with("crate::a::f", ""),
            with("super::g", "g"),
            with("h", "i"),
        ];
        assert_eq!(named(code), expected);
    }

    #[test]
    fn paths_without_use_are_read() {
        let code = "fn f(a: crate::a::B) { c::d(a).e::<F>(); G { h: i } }";
        assert_eq!(named(code), [with("crate::a::B", ""), with("c::d", "")]);
    }
}
