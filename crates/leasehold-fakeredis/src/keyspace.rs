use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::failure::{Failure, WRONG_TYPE};
use crate::sorted_set::SortedSet;

/// What a key holds.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(Vec<u8>),
    /// Fields in the order of their first write, as Redis keeps small hashes.
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
    Sorted(SortedSet),
    /// Exists only so that there are values of another type.
    List(Vec<Vec<u8>>),
}

impl Value {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::Hash(_) => "hash",
            Self::Sorted(_) => "zset",
            Self::List(_) => "list",
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Text(_) => false,
            Self::Hash(fields) => fields.is_empty(),
            Self::Sorted(set) => set.len() == 0,
            Self::List(items) => items.is_empty(),
        }
    }
}

/// A kind of value that a command expects under its key.
pub(crate) trait Kind: Default {
    fn of(value: &mut Value) -> Option<&mut Self>;
    fn into_value(self) -> Value;
}

macro_rules! kind {
    ($type:ty, $variant:ident) => {
        impl Kind for $type {
            fn of(value: &mut Value) -> Option<&mut Self> {
                match value {
                    Value::$variant(inner) => Some(inner),
                    _ => None,
                }
            }

            fn into_value(self) -> Value {
                Value::$variant(self)
            }
        }
    };
}

kind!(Vec<u8>, Text);
kind!(Vec<(Vec<u8>, Vec<u8>)>, Hash);
kind!(SortedSet, Sorted);
kind!(Vec<Vec<u8>>, List);

/// A value, and the instant at which it expires.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    /// Milliseconds of the server's clock. The entry still exists in that same millisecond.
    pub(crate) expires_ms: Option<i64>,
}

/// All keys. Their order is the same in every run.
#[derive(Debug, Default)]
pub(crate) struct Keyspace {
    entries: HashMap<Vec<u8>, Entry, FixedState>,
    pub(crate) now_ms: i64,
}

impl Keyspace {
    /// Returns the entry of a key, unless it has expired.
    pub(crate) fn find(&mut self, key: &[u8]) -> Option<&mut Entry> {
        let expires_ms = self.entries.get(key)?.expires_ms;
        if expires_ms.is_some_and(|expires_ms| self.now_ms > expires_ms) {
            self.entries.remove(key);
            return None;
        }
        self.entries.get_mut(key)
    }

    /// The value of a key, if it has one.
    pub(crate) fn get<T: Kind>(&mut self, key: &[u8]) -> Result<Option<&mut T>, Failure> {
        match self.find(key) {
            None => Ok(None),
            Some(entry) => T::of(&mut entry.value).map(Some).ok_or(WRONG_TYPE),
        }
    }

    /// Returns the value of a key, and creates an empty one if there is none.
    pub(crate) fn get_or_new<T: Kind>(&mut self, key: &[u8]) -> Result<&mut T, Failure> {
        if self.find(key).is_none() {
            self.set(key, T::default().into_value(), None);
        }
        self.get(key)?.ok_or(WRONG_TYPE)
    }

    pub(crate) fn set(&mut self, key: &[u8], value: Value, expires_ms: Option<i64>) {
        let entry = Entry { value, expires_ms };
        match self.entries.get_mut(key) {
            Some(old) => *old = entry,
            None => drop(self.entries.insert(key.to_vec(), entry)),
        }
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        let is_there = self.find(key).is_some();
        self.entries.remove(key);
        is_there
    }

    /// Removes a key if its last member is gone.
    pub(crate) fn remove_if_empty(&mut self, key: &[u8]) {
        if self
            .entries
            .get(key)
            .is_some_and(|entry| entry.value.is_empty())
        {
            self.entries.remove(key);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Returns all entries that have not expired.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &Entry)> {
        let now_ms = self.now_ms;
        let is_there = move |entry: &Entry| entry.expires_ms.is_none_or(|at| now_ms <= at);
        let entries = self
            .entries
            .iter()
            .filter(move |(_, entry)| is_there(entry));
        entries.map(|(key, entry)| (key.as_slice(), entry))
    }
}
