use std::mem;

use leasehold_credentials::{FileParameters, checked_name, checked_prefix, parameters};

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
        for parameter in parameters(text) {
            let (name, value) = parameter?;
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
