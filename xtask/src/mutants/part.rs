use super::mutant::Mutant;
use super::{commits, git};
use crate::workspace::Workspace;

/// A part of the mutants, because all of them take too long for each change. Each commit tries a different
/// part, plus the mutants that the commit changed.
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
        // Includes uncommitted changes.
        let changed = git(workspace, "diff --name-only HEAD^").unwrap_or_default();
        Self {
            turn: commits(workspace) % PARTS,
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

    /// Says which part is tried, and how to try all.
    pub(super) fn notice(&self, chosen: usize, all: usize) -> String {
        format!(
            "mutants: part {} of {PARTS} and what the last commit changed: {chosen} of {all} \
             (`cargo xtask mutants` tries all)",
            self.turn + 1
        )
    }
}

const PARTS: usize = 5;

/// A commit may touch the files of half of the mutants.
const CHANGED_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(turn: usize, changed: &[&str], count: usize) -> Vec<String> {
        let mutant = |at| Mutant {
            name: format!("{at:02}-m"),
            file: format!("src/{at}.rs"),
            ..Mutant::default()
        };
        let all: Vec<Mutant> = (0..count).map(mutant).collect();
        let changed = changed.iter().map(ToString::to_string).collect();
        let chosen = Part { turn, changed }.choose(&all);
        chosen.iter().map(|mutant| mutant.name.clone()).collect()
    }

    #[test]
    fn each_mutant_is_in_one_part() {
        let mut all: Vec<String> = (0..PARTS).flat_map(|turn| chosen(turn, &[], 57)).collect();
        all.sort();
        let expected: Vec<String> = (0..57).map(|at| format!("{at:02}-m")).collect();
        assert_eq!(all, expected);
    }

    #[test]
    fn changed_mutants_are_in_every_part() {
        let changed = ["mutants/03-m.txt", "src/5.rs", "src/8.rs", "README.md"];
        assert_eq!(chosen(0, &changed, 10), ["00-m", "03-m", "05-m", "08-m"]);
    }

    #[test]
    fn large_commit_adds_few_mutants_and_new_ones_first() {
        let touched: Vec<String> = (0..57).map(|at| format!("src/{at}.rs")).collect();
        let mut changed: Vec<&str> = touched.iter().map(String::as_str).collect();
        changed.push("mutants/56-m.txt");
        let names = chosen(0, &changed, 57);
        assert_eq!(names.len(), chosen(0, &[], 57).len() + CHANGED_MAX);
        assert!(names.contains(&"56-m".to_owned()));
    }
}
