use std::error::Error as StdError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use leasehold::store::{BoxFuture, background};
use leasehold::{Error, ErrorKind};

use crate::file;

/// The password of a client. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Password {
    /// The password itself.
    Text(String),
    /// A file with the password, which is read for each login.
    File(PathBuf),
    /// A function that returns the password, made by [`from_fn`](Self::from_fn).
    Source(PasswordSource),
}

/// A function that returns the password for each login.
#[derive(Clone)]
pub struct PasswordSource(Arc<Source>);

type Source = dyn Fn() -> BoxFuture<'static, Result<String, BoxError>> + Send + Sync;
type BoxError = Box<dyn StdError + Send + Sync>;

impl Password {
    /// Returns a password that `source` is asked for at each login, such as a token that expires. If it fails, the login
    /// fails, and the client tries again.
    ///
    /// The client polls the future on its own thread, or on a tokio runtime of the caller, and a login has only a few
    /// seconds. So keep a token until shortly before it expires, and do not block. The text of an error may appear in logs.
    ///
    /// # Examples
    ///
    /// ```
    /// use leasehold_credentials::Password;
    ///
    /// let password = Password::from_fn(|| async {
    ///     let token = std::env::var("TOKEN")?; // a request to the service that signs tokens
    ///     Ok(token)
    /// });
    /// assert_eq!(format!("{password:?}"), "Source(…)");
    /// ```
    pub fn from_fn<F>(source: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String, BoxError>> + Send + 'static,
    {
        Self::Source(PasswordSource(Arc::new(move || Box::pin(source()))))
    }

    /// Checks that the password can be read now.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`], naming the file and the rule that it breaks.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            // A function is called for logins alone.
            Self::Text(_) | Self::Source(_) => Ok(()),
            Self::File(file) => password_in(file).map(drop),
        }
    }

    /// Returns the password for a login. A line break at the end of a file is not part of it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unreachable`] if the file or the function has no password now: a later login may find one.
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
            Self::Source(PasswordSource(source)) => source().await.map_err(|error| {
                let text = format!("no password from the function of this program: {error}");
                Error::new(ErrorKind::Unreachable, text)
            }),
        }
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(…)"),
            Self::File(file) => f.debug_tuple("File").field(file).finish(),
            Self::Source(_) => f.write_str("Source(…)"),
        }
    }
}

/// The same function is the same password.
impl PartialEq for PasswordSource {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PasswordSource {}

impl fmt::Debug for PasswordSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordSource(…)")
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
    use std::sync::atomic::{AtomicUsize, Ordering};

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

    #[tokio::test]
    async fn function_is_called_at_each_login() {
        let calls = AtomicUsize::new(0);
        let password = Password::from_fn(move || {
            let call = calls.fetch_add(1, Ordering::SeqCst);
            async move {
                match call {
                    0 => Err("the service is down".into()),
                    call => Ok(format!("token {call}")),
                }
            }
        });
        password.check().unwrap();
        let error = password.read().await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
        assert!(error.to_string().contains("service is down"), "{error}");
        assert_eq!(password.read().await.unwrap(), "token 1");
        assert_eq!(password.read().await.unwrap(), "token 2");
    }

    #[test]
    fn debug_hides_the_password() {
        let shown = format!("{:?}", Password::Text("secret".into()));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
