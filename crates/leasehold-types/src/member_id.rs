use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The name of a member within its set: `host:port` of its address, or the value of its `?id=`.
///
/// A member that was replaced keeps its name and has another address. Messages show both ([`Display`](fmt::Display)),
/// because people go to the address. Only the name counts in comparisons.
#[derive(Clone)]
pub struct MemberId {
    id: String,
    address: Option<String>,
}

impl MemberId {
    /// Returns this name. The caller ensures that it contains no credential.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            address: None,
        }
    }

    /// Returns the name with the address of the member, for messages.
    #[must_use]
    pub fn at(self, address: impl Into<String>) -> Self {
        let address = address.into();
        Self {
            address: (address != self.id).then_some(address),
            id: self.id,
        }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.id
    }

    /// Returns the address of the member, if it is known: by default its name.
    pub fn address(&self) -> &str {
        self.address.as_deref().unwrap_or(&self.id)
    }
}

impl PartialEq for MemberId {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for MemberId {}

impl PartialOrd for MemberId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for MemberId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.id.cmp(&other.id)
    }
}

impl Hash for MemberId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// Shows the name; if the address differs from it, the address with the name behind it.
impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Some(address) => write!(f, "{address} (id {})", self.id),
            None => f.write_str(&self.id),
        }
    }
}

impl fmt::Debug for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemberId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_member_shows_address_and_id() {
        let id = MemberId::new("10.0.0.3:6379");
        let moved = id.clone().at("10.0.0.9:6379");
        assert_eq!(moved.to_string(), "10.0.0.9:6379 (id 10.0.0.3:6379)");
        assert_eq!((moved.as_str(), &moved), ("10.0.0.3:6379", &id));
        assert_eq!(id.clone().at("10.0.0.3:6379").to_string(), "10.0.0.3:6379");
    }
}
