use std::path::PathBuf;

use leasehold::Error;

use crate::{Password, TlsFiles, TlsSource, percent_decoded};

/// The parameters in the URL of a store that name files: `ca`, `cert`, `key`, and `password_file`.
///
/// # Examples
///
/// ```
/// use leasehold_credentials::FileParameters;
///
/// let mut parameters = FileParameters::default();
/// assert!(parameters.take("ca", "/etc/ca.pem")?);
/// assert!(!parameters.take("prefix", "app")?);
/// let files = parameters.tls(true, "rediss://")?.unwrap();
/// assert_eq!(files.ca, Some("/etc/ca.pem".into()));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Default)]
pub struct FileParameters {
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    password_file: Option<PathBuf>,
}

/// A user and a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Empty if the URL names none.
    pub user: String,
    /// Its password.
    pub password: Password,
}

/// Checks that the files of an address can be used now.
///
/// # Errors
///
/// The first file that cannot.
pub fn check_files(tls: Option<&TlsSource>, login: Option<&Login>) -> Result<(), Error> {
    if let Some(source) = tls {
        source.check()?;
    }
    match login {
        Some(login) => login.password.check(),
        None => Ok(()),
    }
}

pub(crate) fn given_twice(name: &str) -> String {
    format!("the parameter {name:?} is given twice")
}

impl FileParameters {
    /// Takes a parameter with its decoded value. Returns whether it is one of these.
    ///
    /// # Errors
    ///
    /// The rule that the parameter breaks. No error shows a value.
    pub fn take(&mut self, name: &str, value: &str) -> Result<bool, String> {
        let file = match name {
            "ca" => &mut self.ca,
            "cert" => &mut self.cert,
            "key" => &mut self.key,
            "password_file" => &mut self.password_file,
            _ => return Ok(false),
        };
        if value.is_empty() {
            return Err(format!("`{name}` names no file"));
        }
        if file.replace(PathBuf::from(value)).is_some() {
            return Err(given_twice(name));
        }
        Ok(true)
    }

    /// Returns the files for TLS; `None` without TLS. `with` is the part of a URL that asks for TLS.
    ///
    /// # Errors
    ///
    /// The rule that the parameters break.
    pub fn tls(&self, is_encrypted: bool, with: &str) -> Result<Option<TlsFiles>, String> {
        let identity = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Some((cert.clone(), key.clone())),
            (None, None) => None,
            _ => return Err("`cert` and `key` go together".into()),
        };
        let files = TlsFiles {
            ca: self.ca.clone(),
            identity,
        };
        if !is_encrypted && files != TlsFiles::default() {
            return Err(format!("`ca`, `cert` and `key` are for {with} alone"));
        }
        Ok(is_encrypted.then_some(files))
    }

    /// Returns whether a file for TLS is named.
    pub(crate) fn name_tls(&self) -> bool {
        self.ca.is_some() || self.cert.is_some() || self.key.is_some()
    }

    /// Returns the login of a URL; `None` without one. `text` comes before the `@`, if there is one.
    ///
    /// # Errors
    ///
    /// The rule that the login breaks.
    pub(crate) fn login(&self, text: Option<&str>) -> Result<Option<Login>, String> {
        let (user, given) = match text.unwrap_or_default().split_once(':') {
            Some((user, password)) => (user, Some(percent_decoded(password)?)),
            None => (text.unwrap_or_default(), None),
        };
        let file = self.password_file(given.is_some())?;
        match given.map(Password::Text).or(file) {
            Some(password) => {
                let user = percent_decoded(user)?;
                Ok(Some(Login { user, password }))
            }
            None if text.is_none() => Ok(None),
            None => Err("credentials are user:password@, or user@ with password_file=FILE".into()),
        }
    }

    /// Returns the password in a file, for a URL that has a password or not.
    ///
    /// # Errors
    ///
    /// If there are both.
    pub fn password_file(&self, has_password: bool) -> Result<Option<Password>, String> {
        match &self.password_file {
            Some(_) if has_password => {
                Err("the URL has a password and `password_file`; give one of them".into())
            }
            file => Ok(file.clone().map(Password::File)),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;

    use super::*;

    fn taken(pairs: &[(&str, &str)]) -> Result<FileParameters, String> {
        let mut parameters = FileParameters::default();
        for (name, value) in pairs {
            assert!(parameters.take(name, value)?, "{name}");
        }
        Ok(parameters)
    }

    #[test]
    fn broken_rules_are_named() {
        let tls =
            |pairs: &[_], is_encrypted| taken(pairs).and_then(|it| it.tls(is_encrypted, "x://"));
        for (outcome, rule) in [
            (tls(&[("ca", "")], true), "`ca` names no file"),
            (tls(&[("ca", "/a"), ("ca", "/b")], true), "given twice"),
            (tls(&[("cert", "/a")], true), "go together"),
            (tls(&[("key", "/a")], true), "go together"),
            (tls(&[("ca", "/a")], false), "for x:// alone"),
        ] {
            let error = outcome.unwrap_err();
            assert!(error.contains(rule), "{error}");
        }
        let both = taken(&[("password_file", "/a")])
            .unwrap()
            .login(Some("ann:secret"));
        let error = both.unwrap_err();
        assert!(
            error.contains("one of them") && !error.contains("secret"),
            "{error}"
        );
    }

    #[test]
    fn login_is_decoded_and_hidden() {
        let (none, file) = (
            taken(&[]).unwrap(),
            taken(&[("password_file", "/p")]).unwrap(),
        );
        let text = |text: &str| Password::Text(text.into());
        for (parameters, written, user, password) in [
            (&none, "a%40:p%3A%40", "a@", text("p:@")),
            (&none, ":p:q", "", text("p:q")),
            (&none, "ann:", "ann", text("")),
            (&file, "ann", "ann", Password::File("/p".into())),
            (&file, "", "", Password::File("/p".into())),
        ] {
            let login = parameters.login(Some(written)).unwrap().unwrap();
            assert_eq!((login.user.as_str(), &login.password), (user, &password));
            assert!(!format!("{login:?}").contains("p:"));
        }
        assert_eq!(none.login(None), Ok(None));
        for (written, rule) in [
            ("ann", "user:password@"),
            ("", "user:password@"),
            ("a:%FF", "UTF-8"),
        ] {
            let error = none.login(Some(written)).unwrap_err();
            assert!(error.contains(rule), "{error}");
        }
    }

    #[test]
    fn any_parameters_give_their_files_or_a_rule() {
        const NAMES: [&str; 4] = ["ca", "cert", "key", "password_file"];
        let mut rng = rand::rng();
        for _ in 0..20_000 {
            let mut given: Vec<(&str, String)> = Vec::new();
            let mut parameters = FileParameters::default();
            let count = rng.random_range(0..5);
            let outcome = (0..count).try_for_each(|_| {
                let name = NAMES[rng.random_range(0..NAMES.len())];
                let length = rng.random_range(0..3);
                let value: String = (0..length).map(|_| rng.random::<char>()).collect();
                let is_allowed = !value.is_empty() && given.iter().all(|(other, _)| *other != name);
                let taken = parameters.take(name, &value);
                assert_eq!(taken.is_ok(), is_allowed, "{name} {value:?}");
                given.push((name, value));
                taken.map(drop)
            });
            if outcome.is_err() {
                continue;
            }
            let of = |name: &str| {
                given
                    .iter()
                    .find(|it| it.0 == name)
                    .map(|it| PathBuf::from(&it.1))
            };
            let identity = of("cert").zip(of("key"));
            let is_pair = of("cert").is_some() == of("key").is_some();
            let tls = parameters.tls(true, "x://");
            assert_eq!(tls.is_ok(), is_pair);
            if let Ok(files) = tls {
                let ca = of("ca");
                assert_eq!(files, Some(TlsFiles { ca, identity }));
            }
            let login = parameters.login(None).unwrap();
            assert_eq!(
                login.map(|it| it.password),
                of("password_file").map(Password::File)
            );
        }
    }
}
