use std::fmt;
use std::path::{Path, PathBuf};

use leasehold::store::background;
use leasehold::{Error, ErrorKind};

use crate::file;

/// The password of a client. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// The password itself.
    Text(String),
    /// A file with the password, which is read for each login.
    File(PathBuf),
}

impl Password {
    /// Checks that the password can be read now.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`], naming the file and the rule that it breaks.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Self::Text(_) => Ok(()),
            Self::File(file) => password_in(file).map(drop),
        }
    }

    /// Returns the password for a login. A line break at the end of a file is not part of it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unreachable`] if the file has no password now: a later login may find one.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn read(&self) -> Result<String, Error> {
        match self {
            Self::Text(password) => Ok(password.clone()),
            Self::File(file) => {
                let file = file.clone();
                let read = background::blocking(move || password_in(&file)).await?;
                read.map_err(|error| Error::new(ErrorKind::Unreachable, error.reason().to_owned()))
            }
        }
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(…)"),
            Self::File(file) => f.debug_tuple("File").field(file).finish(),
        }
    }
}

fn password_in(path: &Path) -> Result<String, Error> {
    let bytes = file::read("password_file", path)?;
    only_line(bytes).map_err(|rule| file::unusable("password_file", path, &rule))
}

fn only_line(bytes: Vec<u8>) -> Result<String, &'static str> {
    let mut text = String::from_utf8(bytes).map_err(|_| "the password is not UTF-8")?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    if text.is_empty() {
        return Err("the file is empty; expected the password");
    }
    if text.contains(['\n', '\r', '\0']) {
        return Err("the file has several lines; expected the password alone");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_the_last_line_break_is_cut() {
        for (bytes, password) in [
            ("secret", Ok("secret")),
            ("secret\n", Ok("secret")),
            ("secret\r\n", Ok("secret")),
            (" a b ", Ok(" a b ")),
            ("", Err("empty")),
            ("\n", Err("empty")),
            ("secret\n\n", Err("several lines")),
            ("a\nsecret", Err("several lines")),
            ("secret\0", Err("several lines")),
        ] {
            match (only_line(bytes.into()), password) {
                (Ok(found), Ok(password)) => assert_eq!(found, password),
                (Err(rule), Err(part)) => assert!(rule.contains(part), "{rule}"),
                other => panic!("{bytes:?}: {other:?}"),
            }
        }
        assert!(only_line(b"\xff".into()).unwrap_err().contains("UTF-8"));
    }

    #[tokio::test]
    async fn file_is_read_at_each_login() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        let password = Password::File(path.clone());
        let missing = password.check().unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::InvalidInput);
        assert!(
            missing.to_string().contains(path.to_str().unwrap()),
            "{missing}"
        );
        for text in ["one", "two"] {
            fs::write(&path, text).unwrap();
            password.check().unwrap();
            assert_eq!(password.read().await.unwrap(), text);
        }
        fs::write(&path, "").unwrap();
        let error = password.read().await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
        assert!(error.to_string().contains("empty"), "{error}");
    }

    #[test]
    fn endless_file_is_an_error() {
        let error = Password::File("/dev/zero".into()).check().unwrap_err();
        assert!(error.to_string().contains("more than"), "{error}");
    }

    #[test]
    fn debug_hides_the_password() {
        let shown = format!("{:?}", Password::Text("secret".into()));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
