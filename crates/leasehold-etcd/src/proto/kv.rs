//! Keys, values and transactions.

use super::{ResponseHeader, Unary, unary};

unary! {
    RangeRequest => RangeResponse, "KV/Range";
    TxnRequest => TxnResponse, "KV/Txn";
    DeleteRangeRequest => DeleteRangeResponse, "KV/DeleteRange";
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(int64, tag = "2")]
    pub(crate) create_revision: i64,
    #[prost(int64, tag = "3")]
    pub(crate) mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub(crate) value: Vec<u8>,
    #[prost(int64, tag = "6")]
    pub(crate) lease: i64,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    /// Empty for the key alone; otherwise the first key after the range.
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(crate) limit: i64,
    #[prost(int64, tag = "4")]
    pub(crate) revision: i64,
    #[prost(enumeration = "SortOrder", tag = "5")]
    pub(crate) sort_order: i32,
    #[prost(enumeration = "SortTarget", tag = "6")]
    pub(crate) sort_target: i32,
    #[prost(bool, tag = "8")]
    pub(crate) keys_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum SortOrder {
    Unsorted = 0,
    Ascending = 1,
    Descending = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum SortTarget {
    Key = 0,
    CreateRevision = 2,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) kvs: Vec<KeyValue>,
    #[prost(bool, tag = "3")]
    pub(crate) more: bool,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(crate) lease: i64,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct DeleteRangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    /// Whether the answer has the key as it was.
    #[prost(bool, tag = "3")]
    pub(crate) prev_kv: bool,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct DeleteRangeResponse {
    #[prost(message, repeated, tag = "3")]
    pub(crate) prev_kvs: Vec<KeyValue>,
}

impl DeleteRangeRequest {
    /// Deletes one key, and says nothing of it.
    pub(crate) fn one(key: &[u8]) -> Self {
        Self {
            key: key.to_vec(),
            prev_kv: false,
        }
    }
}

/// One operation of a transaction.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct RequestOp {
    #[prost(oneof = "Operation", tags = "1, 2, 3, 4")]
    pub(crate) operation: Option<Operation>,
}

#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub(crate) enum Operation {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    Delete(DeleteRangeRequest),
    #[prost(message, tag = "4")]
    Txn(TxnRequest),
}

/// The answer to one operation of a transaction. Puts have nothing to say.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ResponseOp {
    #[prost(oneof = "OperationAnswer", tags = "1, 3, 4")]
    pub(crate) answer: Option<OperationAnswer>,
}

#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub(crate) enum OperationAnswer {
    #[prost(message, tag = "1")]
    Range(RangeResponse),
    #[prost(message, tag = "3")]
    Delete(DeleteRangeResponse),
    #[prost(message, tag = "4")]
    Txn(TxnResponse),
}

/// A request that can be an operation of a transaction.
pub(crate) trait Batchable: Unary {
    fn into_operation(self) -> Operation;

    /// Reads the answer to the operation. A nested answer has no revision; the header of the transaction has it.
    fn read(answer: OperationAnswer, header: ResponseHeader) -> Option<Self::Answer>;
}

impl Batchable for TxnRequest {
    fn into_operation(self) -> Operation {
        Operation::Txn(self)
    }

    fn read(answer: OperationAnswer, header: ResponseHeader) -> Option<TxnResponse> {
        let OperationAnswer::Txn(mut answer) = answer else {
            return None;
        };
        answer.header = Some(header);
        Some(answer)
    }
}

impl Batchable for DeleteRangeRequest {
    fn into_operation(self) -> Operation {
        Operation::Delete(self)
    }

    fn read(answer: OperationAnswer, _: ResponseHeader) -> Option<DeleteRangeResponse> {
        match answer {
            OperationAnswer::Delete(answer) => Some(answer),
            _ => None,
        }
    }
}

/// A condition of a transaction. With a range it must hold for each key of the range.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Compare {
    #[prost(enumeration = "CompareResult", tag = "1")]
    pub(crate) result: i32,
    #[prost(enumeration = "CompareTarget", tag = "2")]
    pub(crate) target: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) key: Vec<u8>,
    #[prost(oneof = "CompareValue", tags = "5, 6, 7")]
    pub(crate) value: Option<CompareValue>,
    #[prost(bytes = "vec", tag = "64")]
    pub(crate) range_end: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum CompareResult {
    Equal = 0,
    Greater = 1,
    Less = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum CompareTarget {
    Version = 0,
    CreateRevision = 1,
    ModRevision = 2,
    Value = 3,
}

#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub(crate) enum CompareValue {
    #[prost(int64, tag = "5")]
    CreateRevision(i64),
    #[prost(int64, tag = "6")]
    ModRevision(i64),
    #[prost(bytes, tag = "7")]
    Value(Vec<u8>),
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    pub(crate) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(crate) responses: Vec<ResponseOp>,
}

impl TxnResponse {
    /// Returns the revision of the keyspace at the transaction.
    pub(crate) fn revision(&self) -> i64 {
        self.header.map_or(0, |header| header.revision)
    }

    /// Returns the answers to the ranges of the transaction, in their order.
    pub(crate) fn ranges(self) -> impl Iterator<Item = RangeResponse> {
        self.responses.into_iter().filter_map(|op| match op.answer {
            Some(OperationAnswer::Range(range)) => Some(range),
            _ => None,
        })
    }
}

impl Compare {
    /// One key has a value that compares like this.
    pub(crate) fn one(key: Vec<u8>, result: CompareResult, value: CompareValue) -> Self {
        Self::all((key, Vec::new()), result, value)
    }

    /// Each key in a range has a value that compares like this.
    pub(crate) fn all(
        (key, range_end): (Vec<u8>, Vec<u8>),
        result: CompareResult,
        value: CompareValue,
    ) -> Self {
        let target = match value {
            CompareValue::CreateRevision(_) => CompareTarget::CreateRevision,
            CompareValue::ModRevision(_) => CompareTarget::ModRevision,
            CompareValue::Value(_) => CompareTarget::Value,
        };
        Self {
            result: result as i32,
            target: target as i32,
            key,
            value: Some(value),
            range_end,
        }
    }

    /// The key was last written at this revision; 0 stands for a key that does not exist.
    pub(crate) fn is_at(key: &[u8], mod_revision: i64) -> Self {
        let value = CompareValue::ModRevision(mod_revision);
        Self::one(key.to_vec(), CompareResult::Equal, value)
    }
}

impl From<Operation> for RequestOp {
    fn from(operation: Operation) -> Self {
        let operation = Some(operation);
        Self { operation }
    }
}
