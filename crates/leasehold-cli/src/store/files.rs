use std::path::PathBuf;

use leasehold_file::{DirectoryFacts, FileStore, FileStoreOptions};

use crate::output::failure::Failure;

pub(super) fn is_file(url: &str) -> bool {
    url.starts_with(FILE)
}

/// Opens `file:/folder` or `file:///folder`, with an absolute path and optionally `?unsafe_fs=1`.
pub(super) fn open_files(url: &str) -> Result<FileStore, Failure> {
    let (path, options) = file_options(url)?;
    Ok(options.open(path)?)
}

/// Examines the folder that `url` names, without creating anything.
pub(crate) fn look_at_files(url: &str) -> Result<DirectoryFacts, Failure> {
    let (path, options) = file_options(url)?;
    Ok(options.examine(path)?)
}

/// Examines the folder of this machine and user, without creating anything.
pub(crate) fn look_at_default_files() -> Result<DirectoryFacts, Failure> {
    Ok(FileStore::options().examine_default()?)
}

fn file_options(url: &str) -> Result<(PathBuf, FileStoreOptions), Failure> {
    let (path, unsafe_fs) = file_path(url)?;
    // The folder itself is created. A missing parent is more likely a typo.
    if let Some(parent) = path.parent().filter(|parent| !parent.exists()) {
        return Err(Failure::usage(format!(
            "store URL {url:?}: there is no folder {}; create it, or fix the path",
            parent.display()
        )));
    }
    Ok((path, FileStore::options().unsafe_fs(unsafe_fs)))
}

pub(crate) fn file_path(url: &str) -> Result<(PathBuf, bool), Failure> {
    let refuse = |rule: &str| {
        Failure::usage(format!(
            "store URL {url:?}: {rule}; expected file:///folder or file:///folder?unsafe_fs=1"
        ))
    };
    let rest = url.strip_prefix(FILE).unwrap_or(url);
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    let unsafe_fs = match query {
        None | Some("unsafe_fs=0") => false,
        Some("unsafe_fs=1") => true,
        Some(_) => return Err(refuse("unknown parameter")),
    };
    let path = match path.strip_prefix("//") {
        // A host between the slashes would be another machine.
        Some(path) if !path.starts_with('/') => return Err(refuse("it names a host")),
        Some(path) => path,
        None => path,
    };
    if !path.starts_with('/') {
        return Err(refuse("the path of the folder is not absolute"));
    }
    if path.contains('%') {
        return Err(refuse("the path of the folder must not be percent-encoded"));
    }
    Ok((path.into(), unsafe_fs))
}

const FILE: &str = "file:";
