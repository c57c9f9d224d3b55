//! The messages of etcd's API, version 3. Only the fields that the store uses: prost skips all others.

mod kv;
mod lease;
mod operator;
mod watch;

pub(crate) use kv::*;
pub(crate) use lease::*;
pub(crate) use operator::*;
pub(crate) use watch::*;

/// A call with one request and one answer.
pub(crate) trait Unary: prost::Message + Clone + 'static {
    /// The path of the method.
    const PATH: &'static str;
    /// The answer.
    type Answer: prost::Message + Default + Send + 'static;
}

/// Names the method and the answer of each request.
macro_rules! unary {
    ($($request:ty => $answer:ty, $path:literal;)+) => {
        $(impl $crate::proto::Unary for $request {
            const PATH: &'static str = concat!("/etcdserverpb.", $path);
            type Answer = $answer;
        })+
    };
}
use unary;

/// What every answer begins with.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct ResponseHeader {
    #[prost(uint64, tag = "2")]
    pub(crate) member_id: u64,
    /// The revision of the keyspace when the server answered.
    #[prost(int64, tag = "3")]
    pub(crate) revision: i64,
}
