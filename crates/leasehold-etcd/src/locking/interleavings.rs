//! Random interleavings of clients that read the entries of a lock and then try to take it.

use leasehold::Mode;
use leasehold::store::Permits;
use proptest::collection::vec;
use proptest::prelude::*;

use super::entry::Entry;
use super::entry::tests::stored;
use super::names::Position;
use super::order::{Decision, Standing};
use super::snapshot::Snapshot;

/// The keys of one lock in etcd.
#[derive(Default)]
struct Keys {
    revision: i64,
    entries: Vec<Entry>,
    /// When the last fence was written.
    granted_at: i64,
}

/// A client that asks for the lock.
struct Client {
    mode: Mode,
    standing: Standing,
    read: Option<Snapshot>,
}

impl Keys {
    fn is_unchanged(&self, revision: i64, position: Option<Position>) -> bool {
        let range = self.entries.iter();
        let mut range = range.filter(|entry| position.is_none_or(|it| it == entry.position));
        range.all(|entry| entry.modified <= revision)
    }

    /// Whether the transaction that takes the lock succeeds, after a look that found it free.
    fn takes(&self, client: &Client, read: i64, is_first_try: bool) -> bool {
        match client.standing {
            Standing::Newcomer | Standing::Barging => self.is_unchanged(read, None),
            Standing::Queued(_) if is_first_try => self.is_unchanged(read, Some(Position::Ahead)),
            Standing::Queued(_) | Standing::Ahead(_) => self.granted_at <= read,
        }
    }

    /// Whether a client without an entry takes the lock without a look.
    fn is_free(&self, mode: Mode) -> bool {
        let readers = |entry: &Entry| mode == Mode::Shared && entry.position == Position::Reader;
        self.entries.iter().all(readers)
    }

    fn write(&mut self, client: &mut Client, is_granted: bool) {
        self.revision += 1;
        let at = self.revision;
        if is_granted {
            self.granted_at = at;
        }
        let position = match (client.standing, client.mode) {
            (Standing::Barging | Standing::Ahead(_), _) => Position::Ahead,
            (_, Mode::Shared) => Position::Reader,
            _ => Position::Queue,
        };
        let created = client.standing.created().unwrap_or(at);
        client.standing = client.standing.with_entry(created);
        client.read = None;
        self.entries.retain(|entry| entry.created != created);
        self.entries.push(Entry {
            key: created.to_string().into(),
            position,
            lease: created,
            created,
            modified: at,
            mode: client.mode,
            stored: Some(stored(client.mode, is_granted.then_some(7))),
        });
    }

    fn assert_compatible(&self) {
        let held: Vec<_> = self.entries.iter().filter(|it| it.is_held()).collect();
        let most = match held.first().map(|it| it.mode) {
            Some(Mode::Exclusive) => 1,
            Some(Mode::Permit(permits)) => permits.get() as usize,
            Some(Mode::Shared) | None => usize::MAX,
        };
        let is_one_mode = held.iter().all(|it| it.mode == held[0].mode);
        assert!(is_one_mode && held.len() <= most, "{held:?}");
    }
}

impl Client {
    fn holds(&self, keys: &Keys) -> bool {
        let own = |entry: &&Entry| Some(entry.created) == self.standing.created();
        keys.entries.iter().find(own).is_some_and(Entry::is_held)
    }

    /// Sends the next request: a release, a look, or a transaction that tries to take the lock.
    fn step(&mut self, keys: &mut Keys, (barges, is_first_try): (bool, bool)) {
        if self.holds(keys) {
            keys.entries
                .retain(|entry| Some(entry.created) != self.standing.created());
            self.standing = Standing::Newcomer;
            return;
        }
        let Some(read) = self.read.take() else {
            match self.standing {
                Standing::Newcomer if barges => self.standing = Standing::Barging,
                Standing::Newcomer => return self.write_first(keys),
                _ => {}
            }
            self.read = Some(Snapshot::new(keys.revision, keys.entries.iter().cloned()));
            return;
        };
        if read.decide(self.standing, self.mode) != Decision::Free {
            return;
        }
        if keys.takes(self, read.revision, is_first_try) {
            keys.write(self, true);
        } else if self.standing.created().is_none() {
            keys.write(self, false);
        }
    }

    fn write_first(&mut self, keys: &mut Keys) {
        let is_free = keys.is_free(self.mode);
        keys.write(self, is_free);
    }
}

fn modes() -> impl Strategy<Value = Vec<Mode>> {
    let permits = |count| Mode::Permit(Permits::new(count).expect("a number of permits"));
    let mixed = vec![Mode::Exclusive, Mode::Shared, permits(2)];
    let only = prop_oneof![
        Just(vec![permits(2)]),
        Just(vec![Mode::Exclusive, Mode::Shared]),
        Just(mixed),
    ];
    only.prop_flat_map(|modes| vec(prop::sample::select(modes), 4))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn interleaved_clients_hold_only_what_is_compatible(
        modes in modes(),
        steps in vec((0..4_usize, prop::bool::weighted(0.3), any::<bool>()), 0..60),
    ) {
        let mut keys = Keys::default();
        let client = |mode| Client { mode, standing: Standing::Newcomer, read: None };
        let mut clients: Vec<_> = modes.into_iter().map(client).collect();
        for (index, barges, is_first_try) in steps {
            clients[index].step(&mut keys, (barges, is_first_try));
            keys.assert_compatible();
        }
    }
}
