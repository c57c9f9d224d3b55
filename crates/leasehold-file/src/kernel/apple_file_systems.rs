//! The file systems of macOS.

use nix::sys::statfs::Statfs;

/// The name that `statfs(2)` gives to a kind of file system, filled up with zeros.
pub(super) type FileSystemType = [u8; 16];

pub(super) fn of(found: &Statfs) -> FileSystemType {
    let name = found.filesystem_type_name().as_bytes();
    let mut kind = FileSystemType::default();
    let length = name.len().min(kind.len());
    kind[..length].copy_from_slice(&name[..length]);
    kind
}

/// Returns the name if the file system is local.
pub(super) fn local_name(kind: FileSystemType) -> Option<&'static str> {
    LOCAL.into_iter().find(|name| *name == text(&kind))
}

/// Returns what to call a file system that is not known to be local.
pub(super) fn other_name(kind: FileSystemType) -> String {
    text(&kind).into_owned()
}

fn text(kind: &FileSystemType) -> std::borrow::Cow<'_, str> {
    let length = kind.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&kind[..length.unwrap_or(kind.len())])
}

const LOCAL: [&str; 3] = ["apfs", "hfs", "tmpfs"];
