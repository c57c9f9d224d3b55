//! Which store to use: from the environment and the configuration file. The command line and
//! [`from_env`](crate::from_env) share these rules.

mod address_text;
mod configured;
mod environment;
mod file;

pub use address_text::{has_password, parameters, with_password};
pub use configured::{Configured, Setting, Settings};
pub use environment::{Configuration, Environment, PASSWORD, STORE, WITHHELD};
pub use file::parse_file;

use leasehold::{Error, ErrorKind};

use crate::AnyStore;

/// Returns the store that the environment and the configuration file of `leasehold` name, by the same rules as the command.
///
/// The first of these that names a store counts: the variable `LEASEHOLD_STORE`, the file that `LEASEHOLD_CONFIG` names,
/// `$XDG_CONFIG_HOME/leasehold/leasehold.toml` (`~/.config` by default), and `/etc/leasehold/leasehold.toml`.
/// `LEASEHOLD_PASSWORD` is the password for an address that has none; on PostgreSQL, `PGPASSWORD` comes next. Other settings
/// of the file are for the command. The command uses files of the machine if no store is configured; here that is an error,
/// because a service rarely wants locks that other machines do not see.
///
/// It reads files, and sends nothing to a server.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`] if no store is configured, and for a variable, a file, or an address that breaks a rule. The
/// error names its source, and shows no password. [`ErrorKind::Io`] for a file that cannot be read, and
/// [`ErrorKind::Unsupported`] if this build lacks the store.
///
/// # Examples
///
/// ```no_run
/// use leasehold::Client;
///
/// let locks = Client::new(leasehold_stores::from_env()?.open()?);
/// # Ok::<(), leasehold::Error>(())
/// ```
pub fn from_env() -> Result<AnyStore, Error> {
    let environment = Environment::read();
    let Configuration::Store(configured) = environment.configuration()? else {
        return Err(invalid(
            "no store configured; set LEASEHOLD_STORE, or name the store in leasehold.toml",
        ));
    };
    let store = open_with(&configured.addresses, environment.password()?);
    store.map_err(|error| Error::new(error.kind(), format!("{}: {error}", configured.source)))
}

/// Returns the store at these addresses. One without a password gets `password`, or on PostgreSQL that of `PGPASSWORD`, as in
/// all its clients.
///
/// # Errors
///
/// Those of [`AnyStore::new`].
pub fn open_with(addresses: &[String], password: Option<&str>) -> Result<AnyStore, Error> {
    let address = |address: &String| match password {
        Some(password) => with_password(address, password),
        None => address.clone(),
    };
    let addresses: Vec<String> = addresses.iter().map(address).collect();
    match AnyStore::new(&addresses)? {
        #[cfg(feature = "postgres")]
        AnyStore::Postgres(store) => {
            #[expect(
                clippy::disallowed_methods,
                reason = "`from_env` and the command line find the store in this one place"
            )]
            let variable = || std::env::var("PGPASSWORD").ok();
            let password = password.map(str::to_owned).or_else(variable);
            Ok(AnyStore::Postgres(match password {
                Some(password) => store.default_password(password),
                None => store,
            }))
        }
        store => Ok(store),
    }
}

fn invalid(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidInput, text)
}
