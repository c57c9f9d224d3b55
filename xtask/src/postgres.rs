use std::fs;
use std::path::{Path, PathBuf};

/// The package of Debian and Ubuntu that contains the server, in any version.
pub(crate) const PACKAGE: &str = "postgresql";

/// The advice for a user who installs the package.
pub(crate) const ADVICE: &str = "\
The package postgresql makes a database of the system and starts it, unless
/etc/postgresql-common/createcluster.conf says `create_main_cluster = false`.";

/// The package that contains the settings of new databases, and no service.
const COMMON_PACKAGE: &str = "postgresql-common";
const SETTINGS: &str = "/etc/postgresql-common/createcluster.conf";

/// Debian keeps the server's programs out of `PATH`, in one folder per version; newest first.
pub(crate) fn folders() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut versions: Vec<PathBuf> = versions.flatten().map(|entry| entry.path()).collect();
    versions.sort_by_key(|folder| std::cmp::Reverse(version(folder)));
    versions.iter().map(|folder| folder.join("bin")).collect()
}

fn version(folder: &Path) -> Option<u32> {
    folder.file_name()?.to_str()?.parse().ok()
}

/// Installs `packages`, including the server's, with `install`, but prevents the server's package from
/// creating and starting a system database: the tests run their own. Restores the settings afterwards.
pub(crate) fn install_without_database(
    packages: &[&str],
    install: impl Fn(&[&str]) -> Result<(), String>,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{SETTINGS}: {error}");
    install(&[COMMON_PACKAGE])?;
    let before = fs::read_to_string(SETTINGS).map_err(failed)?;
    fs::write(SETTINGS, none_made(&before)).map_err(failed)?;
    let outcome = install(packages);
    fs::write(SETTINGS, before).map_err(failed)?;
    outcome
}

/// Appends the setting, because the last line about a setting wins.
fn none_made(settings: &str) -> String {
    format!("{}\ncreate_main_cluster = false\n", settings.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        assert!(version(Path::new("/x/9")) < version(Path::new("/x/15")));
        assert!(version(Path::new("/x/devel")) < version(Path::new("/x/9")));
    }

    #[test]
    fn setting_is_the_last_line() {
        let before = "create_main_cluster = true\nssl = on";
        let lines = none_made(before);
        assert_eq!(lines.lines().last(), Some("create_main_cluster = false"));
        assert!(lines.starts_with(before));
    }
}
