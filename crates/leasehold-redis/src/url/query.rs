use std::mem;

use leasehold::Key;
use leasehold::store::is_printable;
use leasehold_credentials::FileParameters;

use super::percent::decoded;

/// The longest `?id=` and `?prefix=`, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// The parameters after the `?`.
#[derive(Default)]
pub(super) struct Query {
    pub(super) id: Option<String>,
    pub(super) prefix: Option<String>,
    pub(super) files: FileParameters,
    pub(super) accepts_eviction: bool,
    pub(super) db: Option<String>,
}

impl Query {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut query = Self::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value)?;
            if query.files.take(name, &value)? {
                continue;
            }
            let known = match name {
                "id" => query.id.replace(checked_name(name, value)?).is_none(),
                "prefix" => query.prefix.replace(checked_prefix(value)?).is_none(),
                "evicting" if value == "accept" => !mem::replace(&mut query.accepts_eviction, true),
                "evicting" => return Err(format!("`evicting` is accept, not {value:?}")),
                "db" => query.db.replace(value).is_none(),
                _ => {
                    return Err(format!(
                        "unknown parameter {name:?}: id, prefix, evicting, ca, cert, key, password_file and, for \
                         unix://, db are known"
                    ));
                }
            };
            if !known {
                return Err(format!("the parameter {name:?} is given twice"));
            }
        }
        Ok(query)
    }
}

fn checked_name(name: &str, value: String) -> Result<String, String> {
    let fits = !value.is_empty() && value.len() <= NAME_BYTES_MAX;
    if fits && value.chars().all(is_printable) {
        return Ok(value);
    }
    Err(format!(
        "`{name}` is 1 to {NAME_BYTES_MAX} bytes of printable characters, not {value:?}"
    ))
}

/// Refuses a prefix that, together with some name, makes one of the library's own keys.
fn checked_prefix(value: String) -> Result<String, String> {
    let value = checked_name("prefix", value)?;
    let reserved = Key::RESERVED_PREFIX;
    if value.starts_with(reserved) || reserved.starts_with(&value) {
        return Err(format!(
            "`prefix` {value:?} could make keys that begin with {reserved:?}, which is reserved"
        ));
    }
    Ok(value)
}
