//! Serialization of the value types (feature `serde`): names and identities as text, numbers as numbers.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

use super::fence::Fence;
use super::key::Key;
use super::owner::{ClientId, Owner};
use crate::instants::WallTime;

/// Implements both traits of serde by the text form of a type.
macro_rules! serialize_as_text {
    ($type:ty, $text:expr) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&$text(self))
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(text: D) -> Result<Self, D::Error> {
                parse_text(text)
            }
        }
    };
}

/// Reads a text, and parses it. The error is that of the type.
fn parse_text<'de, T, D>(text: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let text = Cow::<str>::deserialize(text)?;
    text.parse().map_err(D::Error::custom)
}

serialize_as_text!(Key, Key::as_str);
serialize_as_text!(ClientId, ClientId::to_string);
serialize_as_text!(Owner, Owner::to_string);

impl Serialize for Fence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Fence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(deserializer)?;
        Self::new(number).ok_or_else(|| D::Error::custom("a fence is greater than zero"))
    }
}

/// In microseconds since 1970.
impl Serialize for WallTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_micros().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for WallTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self::from_micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClientInfo;

    #[test]
    fn values_survive_json() {
        let owner = format!("{:016x}.{:032x}", 1, 2);
        let text = format!(
            r#"["deploy",7,"{owner}",1700000000000001,{{"id":"{:016x}","host":"web-1","pid":42,"program":"app","since":5}}]"#,
            1
        );
        type Values = (Key, Fence, Owner, WallTime, ClientInfo);
        let values: Values = serde_json::from_str(&text).unwrap();
        assert_eq!(values.0.as_str(), "deploy");
        assert_eq!(values.1.get(), 7);
        assert_eq!(values.4.pid, 42);
        assert_eq!(serde_json::to_string(&values).unwrap(), text);
    }

    #[test]
    fn invalid_values_are_refused() {
        assert!(serde_json::from_str::<Key>(r#""""#).is_err());
        assert!(serde_json::from_str::<Fence>("0").is_err());
        assert!(serde_json::from_str::<Owner>(r#""nobody""#).is_err());
    }
}
