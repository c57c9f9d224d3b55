use std::time::Duration;

use leasehold::member::{MemberId, MemberSet};

use crate::config;
use crate::options::store_args::StoreArgs;
use crate::output::Output;
use crate::output::failure::Failure;
use crate::store::OpenStore;
use crate::store::Quorum;
use crate::store::address::backend;
use crate::store::address_text::without_login;
use crate::store::client::OwnClient;

/// How long the next change must wait after a change, and how long a server that may have forgotten
/// leases has no vote.
pub(crate) fn wait_after_change(set: &MemberSet) -> Duration {
    set.max_ttl + Duration::from_secs(1)
}

/// The servers of the configured store.
pub(crate) struct Servers {
    quorum: Quorum,
    store: OpenStore,
}

impl Servers {
    pub(crate) fn choose(args: &StoreArgs, output: &Output) -> Result<Self, Failure> {
        let choice = config::choose_store(args, output)?;
        let backend = backend(&choice)?;
        Ok(Self {
            quorum: backend.quorum()?,
            store: OpenStore::at(&choice, &*backend)?,
        })
    }

    /// The same, but at least three: with fewer, a majority is all of them.
    pub(crate) fn choose_quorum(args: &StoreArgs, output: &Output) -> Result<Self, Failure> {
        let servers = Self::choose(args, output)?;
        let count = servers.quorum.urls().len();
        if count < Quorum::LEAST {
            let what = match count {
                1 => "a single server needs no quorum; use its URL directly",
                _ => "two servers are no quorum; a quorum has three servers or more",
            };
            return Err(Failure::usage(format!(
                "{}: {what}",
                servers.store.source().unwrap_or_default()
            )));
        }
        Ok(servers)
    }

    pub(crate) fn client(&self) -> OwnClient {
        self.store.client()
    }

    /// The quorum of these servers.
    pub(crate) fn quorum(&self) -> &Quorum {
        &self.quorum
    }
}

/// Which of the servers `member` is: an id or an address.
pub(crate) fn index_of(quorum: &Quorum, member: &str) -> Result<usize, Failure> {
    let id = if member.contains("://") {
        Quorum::id_at(member)?.to_string()
    } else {
        member.to_owned()
    };
    let ids = quorum.ids();
    let mut servers = quorum.urls().iter().zip(&ids);
    let index = servers.position(|(url, it)| url == member || it.as_str() == id);
    index.ok_or_else(|| {
        let ids: Vec<_> = ids.iter().map(MemberId::to_string).collect();
        Failure::usage(format!(
            "{:?} is not a member of the quorum; its members are {}",
            without_login(&id),
            ids.join(", ")
        ))
    })
}
