use std::process::Command;

use super::mutant::Mutant;
use crate::step::answer;
use crate::workspace::Workspace;

/// A part of the mutants, since all of it takes longer than a change may wait for. Each commit runs a
/// different share, plus the mutants that the commit changed.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Of `PARTS`.
    turn: usize,
    /// Files of the tree, as git names them.
    changed: Vec<String>,
}

impl Part {
    /// Returns the part for the commit that is checked out; the first part if git knows no commit.
    pub(super) fn of_commit(workspace: &Workspace) -> Self {
        let git = |arguments: &[&str]| {
            answer(
                Command::new("git")
                    .args(arguments)
                    .current_dir(workspace.root()),
            )
        };
        let commits = git(&["rev-list", "--count", "HEAD"]);
        let commits = commits.and_then(|count| count.parse::<usize>().ok());
        // Includes uncommitted changes.
        let changed = git(&["diff", "--name-only", "HEAD^"]).unwrap_or_default();
        Self {
            turn: commits.unwrap_or_default() % PARTS,
            changed: changed.lines().map(str::to_owned).collect(),
        }
    }

    /// Chooses the share of this part, plus at most `CHANGED_MAX` mutants that the commit changed, those
    /// with a new text first.
    pub(super) fn choose<'a>(&self, all: &'a [Mutant]) -> Vec<&'a Mutant> {
        let is_changed = |file: &str| self.changed.iter().any(|changed| changed == file);
        let (mut chosen, others): (Vec<_>, Vec<_>) = all
            .iter()
            .enumerate()
            .partition(|(at, _)| at % PARTS == self.turn);
        let (new, others): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|(_, mutant)| is_changed(&mutant.path()));
        let touched = others
            .into_iter()
            .filter(|(_, mutant)| is_changed(&mutant.file));
        chosen.extend(new.into_iter().chain(touched).take(CHANGED_MAX));
        chosen.sort_by_key(|(at, _)| *at);
        chosen.into_iter().map(|(_, mutant)| mutant).collect()
    }

    /// What is shown, and how to see the rest.
    pub(super) fn notice(&self, chosen: usize, all: usize) -> String {
        format!(
            "mutants: part {} of {PARTS}, and what the last commit changed: {chosen} of {all} mutants. \
             `cargo xtask mutants` shows all",
            self.turn + 1
        )
    }
}

const PARTS: usize = 5;

/// A commit may touch what half of the mutants are let into.
const CHANGED_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn mutants(count: usize) -> Vec<Mutant> {
        let mutant = |at| Mutant {
            name: format!("{at:02}-e"),
            file: format!("src/{at}.rs"),
            ..Mutant::default()
        };
        (0..count).map(mutant).collect()
    }

    fn chosen(turn: usize, changed: &[&str], count: usize) -> Vec<String> {
        let changed = changed.iter().map(ToString::to_string).collect();
        let all = mutants(count);
        let chosen = Part { turn, changed }.choose(&all);
        chosen.iter().map(|mutant| mutant.name.clone()).collect()
    }

    #[test]
    fn all_parts_together_are_all_mutants_and_none_is_in_two() {
        for count in [0, 1, 4, 5, 57, 60] {
            let parts: Vec<Vec<String>> = (0..PARTS).map(|turn| chosen(turn, &[], count)).collect();
            let sizes = || parts.iter().map(Vec::len);
            let spread = sizes().max().unwrap() - sizes().min().unwrap();
            assert!(spread <= 1, "{count}: {parts:?}");
            let mut shown = parts.concat();
            shown.sort();
            let all: Vec<String> = mutants(count).into_iter().map(|one| one.name).collect();
            assert_eq!(shown, all);
        }
    }

    #[test]
    fn what_the_commit_changed_is_shown_once_whoever_has_the_turn() {
        let changed = ["mutants/03-e.txt", "src/5.rs", "src/8.rs", "README.md"];
        let expected = ["00-e", "03-e", "05-e", "08-e"];
        assert_eq!(chosen(0, &changed, 10), expected);
    }

    #[test]
    fn a_large_commit_has_its_new_mutants_shown_before_those_it_touched() {
        let touched: Vec<String> = (0..57).map(|at| format!("src/{at}.rs")).collect();
        let mut changed: Vec<&str> = touched.iter().map(String::as_str).collect();
        changed.push("mutants/56-e.txt");
        let share = chosen(0, &[], 57).len();
        let chosen = chosen(0, &changed, 57);
        assert_eq!(chosen.len(), share + CHANGED_MAX);
        assert!(chosen.contains(&"56-e".to_owned()));
    }
}
