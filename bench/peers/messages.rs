//! The messages of etcd's API that its bare client and its lock service need.

/// An answer that nothing reads.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct Nothing {}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct LeaseGrant {
    /// In seconds.
    #[prost(int64, tag = "1")]
    pub(super) ttl: i64,
    #[prost(int64, tag = "2")]
    pub(super) id: i64,
}

/// A request to revoke a lease, or to keep it alive.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct LeaseId {
    #[prost(int64, tag = "1")]
    pub(super) id: i64,
}

/// A condition on a key.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct Compare {
    /// What is compared; 1 is the revision of the key's creation, which is 0 without it.
    #[prost(int32, tag = "2")]
    pub(super) target: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub(super) key: Vec<u8>,
}

impl Compare {
    pub(super) fn is_absent(key: &[u8]) -> Self {
        Self {
            target: 1,
            key: key.to_vec(),
        }
    }
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct Put {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) value: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) lease: i64,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct Operation {
    #[prost(message, optional, tag = "2")]
    pub(super) put: Option<Put>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct Transaction {
    #[prost(message, repeated, tag = "1")]
    pub(super) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(super) success: Vec<Operation>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct Transacted {
    #[prost(bool, tag = "2")]
    pub(super) succeeded: bool,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct Lock {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) name: Vec<u8>,
    #[prost(int64, tag = "2")]
    pub(super) lease: i64,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct Locked {
    #[prost(bytes = "vec", tag = "2")]
    pub(super) key: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct Unlock {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
}
