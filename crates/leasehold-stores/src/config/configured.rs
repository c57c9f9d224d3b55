use std::fmt;
use std::path::PathBuf;

use leasehold::Error;

use super::invalid;

/// The addresses of a store, and where they are configured. `Debug` shows no address, which may contain a password.
#[derive(Clone)]
pub struct Configured {
    /// At least one, and none is empty.
    pub addresses: Vec<String>,
    /// Their source, for error messages: a variable, an option, or the line of a file.
    pub source: String,
    /// The configuration file that names them.
    pub file: Option<PathBuf>,
    /// What the file says about locks of this store.
    pub settings: Settings,
}

/// The settings of a configuration file for the locks of the command.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The TTL.
    pub ttl: Option<Setting>,
    /// The longest wait.
    pub wait: Option<Setting>,
    /// What others see of a command.
    pub show_command: Option<Setting>,
    /// Whether each run records how its command ended.
    pub record_end: bool,
}

/// A value in a configuration file.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The value.
    pub text: String,
    /// The file and the line.
    pub place: String,
}

impl Configured {
    /// Returns these addresses.
    ///
    /// # Errors
    ///
    /// If there is none, or an empty one.
    pub fn new(addresses: Vec<String>, source: String) -> Result<Self, Error> {
        if addresses.iter().all(String::is_empty) {
            return Err(invalid(format!(
                "{source} names no store; expected a URL such as redis://host or file:///folder"
            )));
        }
        if addresses.iter().any(String::is_empty) {
            return Err(invalid(format!(
                "{source} contains an empty address; remove the extra comma"
            )));
        }
        Ok(Self {
            addresses,
            source,
            file: None,
            settings: Settings::default(),
        })
    }
}

impl fmt::Debug for Configured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Configured")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
