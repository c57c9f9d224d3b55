use std::path::PathBuf;

use leasehold::{Error, ErrorKind};
use leasehold_file::{DirectoryFacts, FileStore, FileStoreOptions};

/// A folder of lock files that a URL names: `file:/folder` or `file:///folder`, with an absolute path and optionally
/// `?unsafe_fs=1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
    accepts_any_file_system: bool,
}

impl Folder {
    /// Reads the URL. Opens nothing.
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let form = "file:///folder or file:///folder?unsafe_fs=1";
        let refuse = |rule: &str| Err(Error::invalid_url(url, rule, form));
        let rest = url.strip_prefix("file:").unwrap_or(url);
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        };
        let accepts_any_file_system = match query {
            None | Some("unsafe_fs=0") => false,
            Some("unsafe_fs=1") => true,
            Some(_) => return refuse("unknown parameter: unsafe_fs is known, which is 0 or 1"),
        };
        let path = match path.strip_prefix("//") {
            // A host between the slashes would be another machine.
            Some(path) if !path.starts_with('/') => return refuse("it names a host"),
            Some(path) => path,
            None => path,
        };
        if !path.starts_with('/') {
            return refuse("the path of the folder is not absolute");
        }
        if path.contains('%') {
            return refuse("the path of the folder must not be percent-encoded");
        }
        Ok(Self {
            path: path.into(),
            accepts_any_file_system,
        })
    }

    /// Opens the folder, and creates it if it is absent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if its parent is absent, and those of [`FileStoreOptions::open`].
    pub fn open(&self) -> Result<FileStore, Error> {
        self.options()?.open(&self.path)
    }

    /// Returns facts about the folder. Creates nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if its parent is absent, and those of [`FileStoreOptions::examine`].
    pub fn examine(&self) -> Result<DirectoryFacts, Error> {
        self.options()?.examine(&self.path)
    }

    fn options(&self) -> Result<FileStoreOptions, Error> {
        // The folder itself is created. A missing parent is more likely a typo.
        if let Some(parent) = self.path.parent().filter(|parent| !parent.exists()) {
            return Err(invalid(format!(
                "store URL \"file://{}\": there is no folder {}; create it, or fix the path",
                self.path.display(),
                parent.display()
            )));
        }
        Ok(FileStore::options().unsafe_fs(self.accepts_any_file_system))
    }
}

fn invalid(text: String) -> Error {
    Error::new(ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_absolute_and_on_this_machine() {
        let folder = |url| Folder::parse(url).unwrap();
        assert_eq!(folder("file:/a/b").path, PathBuf::from("/a/b"));
        assert!(!folder("file:/a/b").accepts_any_file_system);
        let unsafe_fs = folder("file:///a/b?unsafe_fs=1");
        assert_eq!(unsafe_fs.path, PathBuf::from("/a/b"));
        assert!(unsafe_fs.accepts_any_file_system);
        for (url, rule) in [
            ("file:a", "not absolute"),
            ("file://host/a", "names a host"),
            ("file:", "not absolute"),
            ("file:/a?x=1", "unknown parameter"),
            ("file:/a%20b", "percent-encoded"),
        ] {
            let error = Folder::parse(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            let text = error.to_string();
            // What follows the `?` may be a part of a password.
            let (shown, _) = url.split_once('?').unwrap_or((url, ""));
            assert!(text.contains(shown) && text.contains(rule), "{text}");
        }
    }

    #[test]
    fn mistyped_path_creates_nothing() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("absent").join("locks");
        let folder = Folder::parse(&format!("file://{}", path.display())).unwrap();
        for error in [folder.open().unwrap_err(), folder.examine().unwrap_err()] {
            assert!(error.to_string().contains("there is no folder "), "{error}");
        }
        assert!(!parent.path().join("absent").exists());
    }
}
