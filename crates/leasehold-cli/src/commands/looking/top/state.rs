//! What the view shows, and how keys change it.
#![deny(clippy::disallowed_types)]

use std::time::Duration;

use leasehold::Key;
use leasehold::clock::WallTime;
use leasehold::look::ListedLock;
use leasehold::look::Owner;

use crate::commands::looking::top::order::{Sort, matches, order};
use crate::commands::looking::top::snapshot::Snapshot;

/// The view.
///
/// Pure: keys, answers of the store and the time are values.
#[derive(Debug)]
pub(super) struct Top {
    pub(super) store: String,
    pub(super) interval: Duration,
    pub(super) snapshot: Option<Snapshot>,
    /// Why the store does not answer, and since when.
    pub(super) failure: Option<(WallTime, String)>,
    /// The locks that match the filter, in their order: indices of the listing.
    rows: Vec<usize>,
    selected: Option<Key>,
    pub(super) sort: Sort,
    pub(super) reversed: bool,
    pub(super) filter: String,
    pub(super) prompt: Prompt,
    /// What the last key did, if that is worth a line.
    pub(super) notice: Option<String>,
    /// The widest text of each column so far, so that columns keep their places.
    pub(super) widest: Vec<String>,
}

/// What the keys mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Prompt {
    Browse,
    /// Any key closes the list of keys.
    Help,
    /// They change the filter.
    Filter,
    /// They change the reason for a break.
    Reason(Break),
    /// They confirm the break.
    Confirm(Break),
}

/// A lease that the operator wants to break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Break {
    pub(super) lock: Key,
    pub(super) owner: Owner,
    pub(super) holder: String,
    pub(super) reason: String,
}

/// A key that means something here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Press {
    Char(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Interrupt,
}

/// What the program does after a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    Draw,
    Quit,
    /// Ends the program as the interrupt key does elsewhere.
    Interrupt,
    /// Asks the store now.
    Refresh,
    Break(Break),
}

impl Top {
    pub(super) fn new(store: String, interval: Duration) -> Self {
        Self {
            store,
            interval,
            snapshot: None,
            failure: None,
            rows: Vec::new(),
            selected: None,
            sort: Sort::Name,
            reversed: false,
            filter: String::new(),
            prompt: Prompt::Browse,
            notice: None,
            widest: Vec::new(),
        }
    }

    /// The store answered, or did not.
    pub(super) fn answered(&mut self, answer: Result<Snapshot, String>, now: WallTime) {
        match answer {
            Ok(snapshot) => {
                let row = self.index().unwrap_or(0);
                self.snapshot = Some(snapshot);
                self.failure = None;
                self.arrange_around(row);
            }
            Err(why) => {
                let since = self.failure.take().map_or(now, |(since, _)| since);
                self.failure = Some((since, why));
            }
        }
    }

    /// The locks that match the filter.
    pub(super) fn count(&self) -> usize {
        self.rows.len()
    }

    /// The locks of the page with the selected one, if `height` fit on the screen.
    pub(super) fn page(&self, height: usize) -> impl Iterator<Item = &ListedLock> {
        let height = height.max(1);
        let start = self.index().unwrap_or(0) / height * height;
        let page = self.rows.iter().skip(start).take(height);
        page.filter_map(|index| self.snapshot.as_ref()?.listing.locks.get(*index))
    }

    /// The names of the locks whose queues are worth reading.
    pub(super) fn shown(&self, height: usize) -> Vec<Key> {
        self.page(height).map(|lock| lock.key.clone()).collect()
    }

    pub(super) fn selected(&self) -> Option<&ListedLock> {
        let index = *self.rows.get(self.index()?)?;
        self.snapshot.as_ref()?.listing.locks.get(index)
    }

    pub(super) fn is_selected(&self, lock: &ListedLock) -> bool {
        self.selected.as_ref() == Some(&lock.key)
    }

    /// Reacts to a key while `height` locks fit on the screen.
    pub(super) fn press(&mut self, press: Press, height: usize) -> Action {
        self.notice = None;
        if press == Press::Interrupt {
            return Action::Interrupt;
        }
        match self.prompt.clone() {
            Prompt::Browse => return self.browse(press, height),
            Prompt::Help => self.prompt = Prompt::Browse,
            Prompt::Filter => self.edit_filter(press),
            Prompt::Reason(breaking) => self.edit_reason(breaking, press),
            Prompt::Confirm(breaking) => {
                self.prompt = Prompt::Browse;
                if press == Press::Char('y') {
                    self.notice = Some(format!("breaking {} …", breaking.lock));
                    return Action::Break(breaking);
                }
                self.notice = Some("nothing is broken".into());
            }
        }
        Action::Draw
    }

    fn browse(&mut self, press: Press, height: usize) -> Action {
        let step = isize::try_from(height.max(1)).unwrap_or(isize::MAX);
        match press {
            Press::Char('q') => return Action::Quit,
            Press::Char('?' | 'h') => self.prompt = Prompt::Help,
            Press::Escape if !self.filter.is_empty() => {
                self.filter.clear();
                self.arrange();
            }
            Press::Escape => self.notice = Some("q quits, ? shows the keys".into()),
            Press::Enter | Press::Char(' ') => return Action::Refresh,
            Press::Up | Press::Char('k') => self.step(-1),
            Press::Down | Press::Char('j') => self.step(1),
            Press::PageUp => self.step(-step),
            Press::PageDown => self.step(step),
            Press::Home => self.select(0),
            Press::End => self.select(self.rows.len().saturating_sub(1)),
            Press::Char('/') => self.prompt = Prompt::Filter,
            Press::Char('s') => {
                self.sort = self.sort.next();
                self.arrange();
            }
            Press::Char('r') => {
                self.reversed = !self.reversed;
                self.arrange();
            }
            Press::Char('b') => match self.breakable() {
                Ok(breaking) => self.prompt = Prompt::Reason(breaking),
                Err(why) => self.notice = Some(why),
            },
            _ => {}
        }
        Action::Draw
    }

    fn edit_filter(&mut self, press: Press) {
        match press {
            Press::Char(c) => self.filter.push(c),
            Press::Backspace => drop(self.filter.pop()),
            Press::Escape => {
                self.filter.clear();
                self.prompt = Prompt::Browse;
            }
            Press::Enter => self.prompt = Prompt::Browse,
            _ => {}
        }
        self.arrange();
    }

    fn edit_reason(&mut self, mut breaking: Break, press: Press) {
        match press {
            Press::Char(c) => breaking.reason.push(c),
            Press::Backspace => drop(breaking.reason.pop()),
            Press::Escape => {
                self.prompt = Prompt::Browse;
                self.notice = Some("nothing is broken".into());
                return;
            }
            Press::Enter if breaking.reason.trim().is_empty() => {
                self.notice = Some("a break needs a reason".into());
            }
            Press::Enter => {
                self.prompt = Prompt::Confirm(breaking);
                return;
            }
            _ => {}
        }
        self.prompt = Prompt::Reason(breaking);
    }

    /// The lease of the selected lock, or why it cannot be broken.
    fn breakable(&self) -> Result<Break, String> {
        let Some(lock) = self.selected() else {
            return Err("no lock is selected".into());
        };
        let [sight] = lock.holders.as_slice() else {
            let text = format!(
                "{} has several holders; use `leasehold break` to choose one",
                lock.key
            );
            return Err(text);
        };
        let holder = &sight.holder;
        let Some(owner) = holder.owner else {
            let text = format!("{} is held by another library", lock.key);
            return Err(text);
        };
        Ok(Break {
            lock: lock.key.clone(),
            owner,
            holder: holder.to_string(),
            reason: String::new(),
        })
    }

    fn index(&self) -> Option<usize> {
        let locks = &self.snapshot.as_ref()?.listing.locks;
        let selected = self.selected.as_ref()?;
        let mut rows = self.rows.iter();
        rows.position(|index| &locks[*index].key == selected)
    }

    fn step(&mut self, by: isize) {
        let index = self.index().unwrap_or(0).saturating_add_signed(by);
        self.select(index.min(self.rows.len().saturating_sub(1)));
    }

    fn select(&mut self, row: usize) {
        let locks = self.snapshot.as_ref().map(|it| &it.listing.locks);
        let index = self.rows.get(row);
        self.selected = locks.and_then(|locks| Some(locks[*index?].key.clone()));
    }

    fn arrange(&mut self) {
        self.arrange_around(self.index().unwrap_or(0));
    }

    /// Filters and sorts the locks. The selection stays at its lock, or otherwise in `row`.
    fn arrange_around(&mut self, row: usize) {
        let Some(snapshot) = &self.snapshot else {
            return;
        };
        let filter = self.filter.to_lowercase();
        let locks = &snapshot.listing.locks;
        let matching = (0..locks.len()).filter(|index| matches(&locks[*index], &filter));
        let mut rows: Vec<usize> = matching.collect();
        // The listing is sorted by name, and equal locks stay in that order.
        rows.sort_by(|a, b| order(self.sort, &locks[*a], &locks[*b], snapshot));
        if self.reversed {
            rows.reverse();
        }
        self.rows = rows;
        if self.index().is_none() {
            self.select(row.min(self.rows.len().saturating_sub(1)));
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::output::locks::lock_table::tests::holder;
    use leasehold::look::LockListing;
    use std::collections::HashMap;

    /// The locks with these names, the first taken last.
    pub(crate) fn snapshot(names: &[&str]) -> Snapshot {
        let lock = |(index, name): (usize, &&str)| {
            let since = 1_000 - 10 * u64::try_from(index).unwrap();
            let mut holder = holder(since, &format!("web-{}", names.len() - index), "./job");
            holder.remaining = Some(Duration::from_secs(since % 60));
            ListedLock::new(Key::new(name).unwrap(), vec![holder])
        };
        Snapshot {
            at: WallTime::from_micros(1_060_000_000),
            listing: LockListing::new(names.iter().enumerate().map(lock).collect(), false),
            queues: HashMap::new(),
            members: Vec::new(),
        }
    }

    pub(crate) fn top(names: &[&str]) -> Top {
        let mut top = Top::new("redis://10.0.0.9".into(), Duration::from_secs(2));
        top.answered(Ok(snapshot(names)), WallTime::from_micros(0));
        top
    }

    fn type_in(top: &mut Top, text: &str) {
        for c in text.chars() {
            assert_eq!(top.press(Press::Char(c), 5), Action::Draw);
        }
    }

    fn names(top: &Top) -> Vec<&str> {
        top.page(100).map(|lock| lock.key.as_str()).collect()
    }

    #[test]
    fn filter_finds_names_and_holders() {
        let mut top = top(&["api", "batch", "web"]);
        type_in(&mut top, "/AT");
        assert_eq!(names(&top), ["batch"]);
        top.press(Press::Escape, 5);
        type_in(&mut top, "/web-3");
        assert_eq!(names(&top), ["api"]);
        assert_eq!(top.press(Press::Enter, 5), Action::Draw);
        assert_eq!(names(&top), ["api"], "the filter stays");
        assert_eq!(top.press(Press::Escape, 5), Action::Draw);
        assert_eq!(names(&top).len(), 3);
    }

    #[test]
    fn only_q_and_the_interrupt_key_quit() {
        let mut top = top(&["api"]);
        for (press, action) in [
            (Press::Escape, Action::Draw),
            (Press::Char('?'), Action::Draw),
            (Press::Char('q'), Action::Draw),
            (Press::Char('q'), Action::Quit),
            (Press::Interrupt, Action::Interrupt),
        ] {
            assert_eq!(top.press(press, 5), action, "{press:?}");
        }
    }

    #[test]
    fn sorting_goes_round_and_reverses() {
        let mut top = top(&["a", "b", "c"]);
        type_in(&mut top, "s");
        assert_eq!((top.sort, names(&top)), (Sort::Held, vec!["c", "b", "a"]));
        type_in(&mut top, "r");
        assert_eq!(names(&top), ["a", "b", "c"]);
        type_in(&mut top, "ssss");
        assert_eq!((top.sort, names(&top)), (Sort::Name, vec!["c", "b", "a"]));
    }

    #[test]
    fn selection_stays_with_its_lock() {
        let mut top = top(&["a", "b", "c"]);
        top.press(Press::Down, 5);
        assert_eq!(top.selected().unwrap().key.as_str(), "b");
        top.answered(Ok(snapshot(&["0", "a", "b"])), WallTime::from_micros(0));
        assert_eq!(top.selected().unwrap().key.as_str(), "b");
        top.answered(Ok(snapshot(&["0", "a"])), WallTime::from_micros(0));
        assert_eq!(top.selected().unwrap().key.as_str(), "a", "in its row");
        top.press(Press::PageDown, 5);
        top.press(Press::Home, 5);
        assert_eq!(top.selected().unwrap().key.as_str(), "0");
    }

    #[test]
    fn break_needs_a_reason_and_a_confirmation() {
        let mut top = top(&["deploy"]);
        type_in(&mut top, "b");
        top.press(Press::Enter, 5);
        assert_eq!(top.notice.as_deref(), Some("a break needs a reason"));
        type_in(&mut top, "hangsy");
        top.press(Press::Backspace, 5);
        top.press(Press::Enter, 5);
        assert!(matches!(top.prompt, Prompt::Confirm(_)));
        top.press(Press::Char('n'), 5);
        assert_eq!(top.notice.as_deref(), Some("nothing is broken"));
        type_in(&mut top, "bhangs");
        top.press(Press::Enter, 5);
        let Action::Break(breaking) = top.press(Press::Char('y'), 5) else {
            panic!("{top:?}");
        };
        assert_eq!(
            (breaking.lock.as_str(), &*breaking.reason),
            ("deploy", "hangs")
        );
    }

    #[test]
    fn silent_store_keeps_the_last_answer() {
        let mut top = top(&["deploy"]);
        top.answered(Err("refused".into()), WallTime::from_micros(5));
        top.answered(Err("refused again".into()), WallTime::from_micros(9));
        assert_eq!(
            top.failure,
            Some((WallTime::from_micros(5), "refused again".into()))
        );
        assert_eq!(names(&top), ["deploy"]);
        top.answered(Ok(snapshot(&[])), WallTime::from_micros(10));
        assert!(top.failure.is_none() && top.selected().is_none());
        assert_eq!(top.press(Press::Char('b'), 5), Action::Draw);
        assert_eq!(top.notice.as_deref(), Some("no lock is selected"));
    }

    #[test]
    fn only_a_page_of_queues_is_read() {
        let names: Vec<String> = (0..10_000).map(|n| format!("job-{n:05}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut top = top(&names[..90]);
        assert_eq!(top.shown(20).len(), 20);
        top.press(Press::End, 20);
        assert_eq!(top.shown(20).first().unwrap().as_str(), "job-00080");
        assert_eq!(top.shown(20).len(), 10);
    }
}
