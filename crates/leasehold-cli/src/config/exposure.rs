//! Whether other users of this machine can read a file.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Everyone may read a file, or search a folder.
const READ: u32 = 0o004;
const SEARCH: u32 = 0o001;

/// Returns a warning if every user of this machine can read the file with this secret. A group that may read it was
/// chosen.
pub(super) fn warning(file: &Path, secret: &str) -> Option<String> {
    is_exposed(file).then(|| {
        let file = file.display();
        format!(
            "{file} contains {secret}, and every user of this machine can read it; run `chmod o-r {file}`"
        )
    })
}

fn is_exposed(file: &Path) -> bool {
    let allows = |path: &Path, right| fs::metadata(path).is_ok_and(|it| it.mode() & right != 0);
    let Ok(file) = file.canonicalize() else {
        return false;
    };
    // A pipe has no other readers.
    file.is_file()
        && allows(&file, READ)
        && file
            .ancestors()
            .skip(1)
            .all(|folder| allows(folder, SEARCH))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_files_that_everyone_reads_are_exposed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("leasehold.toml");
        fs::write(&file, "").unwrap();
        let chmod = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        for (folder_mode, mode, is_warned) in [
            (0o755, 0o644, true),
            (0o711, 0o604, true),
            (0o755, 0o640, false),
            (0o755, 0o600, false),
            (0o700, 0o644, false),
        ] {
            chmod(folder.path(), folder_mode);
            chmod(&file, mode);
            assert_eq!(
                warning(&file, "a password").is_some(),
                is_warned,
                "{folder_mode:o} {mode:o}"
            );
        }
        assert_eq!(warning(&folder.path().join("none"), "a password"), None);
    }
}
