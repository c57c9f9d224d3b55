//! What an operator asks: the state of the servers, and the rights of users.

use super::unary;

unary! {
    StatusRequest => StatusResponse, "Maintenance/Status";
    AlarmRequest => AlarmResponse, "Maintenance/Alarm";
    MemberListRequest => MemberListResponse, "Cluster/MemberList";
    UserGetRequest => UserGetResponse, "Auth/UserGet";
    RoleGetRequest => RoleGetResponse, "Auth/RoleGet";
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct StatusRequest {}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<super::ResponseHeader>,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
    #[prost(int64, tag = "3")]
    pub(crate) db_size: i64,
    /// 0 if the member knows no leader.
    #[prost(uint64, tag = "4")]
    pub(crate) leader: u64,
    #[prost(bool, tag = "10")]
    pub(crate) is_learner: bool,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct AlarmRequest {
    /// 0 asks for the alarms.
    #[prost(int32, tag = "1")]
    pub(crate) action: i32,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct AlarmResponse {
    #[prost(message, repeated, tag = "2")]
    pub(crate) alarms: Vec<AlarmMember>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct AlarmMember {
    #[prost(uint64, tag = "1")]
    pub(crate) member_id: u64,
    #[prost(enumeration = "AlarmType", tag = "2")]
    pub(crate) alarm: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum AlarmType {
    None = 0,
    NoSpace = 1,
    Corrupt = 2,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct MemberListRequest {}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct MemberListResponse {
    #[prost(message, repeated, tag = "2")]
    pub(crate) members: Vec<Member>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Member {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct UserGetRequest {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct UserGetResponse {
    #[prost(string, repeated, tag = "2")]
    pub(crate) roles: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct RoleGetRequest {
    #[prost(string, tag = "1")]
    pub(crate) role: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct RoleGetResponse {
    #[prost(message, repeated, tag = "2")]
    pub(crate) permissions: Vec<Permission>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Permission {
    #[prost(enumeration = "PermissionType", tag = "1")]
    pub(crate) kind: i32,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) range_end: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum PermissionType {
    Read = 0,
    Write = 1,
    ReadWrite = 2,
}
