//! The optional traits of a store, for calls that need one.

use super::Store;
use super::admin::Admin;
use super::inspection::Inspection;
use super::records::Records;
use crate::types::{Error, ErrorKind};

pub(crate) fn inspection<S: Store + ?Sized>(store: &S) -> Result<&dyn Inspection, Error> {
    store
        .inspection()
        .ok_or_else(|| unsupported(store, "cannot list its locks"))
}

pub(crate) fn admin<S: Store + ?Sized>(store: &S) -> Result<&dyn Admin, Error> {
    store
        .admin()
        .ok_or_else(|| unsupported(store, "cannot take a lock from its holder"))
}

pub(crate) fn records<S: Store + ?Sized>(store: &S) -> Result<&dyn Records, Error> {
    store
        .records()
        .ok_or_else(|| unsupported(store, "keeps no records"))
}

pub(crate) fn unsupported<S: Store + ?Sized>(store: &S, reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unsupported, reason).with_store(store.to_string())
}
