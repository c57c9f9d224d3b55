use std::sync::Arc;
use std::time::Duration;

use leasehold::ambient::Ambient;
use leasehold::clock::BootInstant;
use leasehold::{
    Claim, Client, ClientInfo, Health as _, Key, Member, MemoryStore, Owner, Quorum, Store,
};
use leasehold_testkit::{Call, FaultyMember, virtual_ambient};

/// A client on virtual time, and the members behind it.
pub(crate) struct Scene {
    pub(crate) ambient: Ambient,
    pub(crate) members: Vec<FaultyMember>,
    /// What the members keep their data in.
    pub(crate) stores: Vec<MemoryStore>,
    pub(crate) client: Client,
}

pub(crate) const TTL: Duration = Duration::from_secs(30);

/// The margin of the deadline on a single store, and on a quorum, for [`TTL`].
pub(crate) const MARGIN: Duration = Duration::from_millis(3_002);
pub(crate) const QUORUM_MARGIN: Duration = Duration::from_millis(3_500);

/// How long a member is out that may have forgotten: the longest TTL and a second.
pub(crate) const WAIT: Duration = Duration::from_secs(61);

impl Scene {
    /// A store by itself, without a quorum around it.
    pub(crate) fn single() -> Self {
        let ambient = virtual_ambient(1);
        let store = MemoryStore::member("m0", ambient.clone());
        let member = FaultyMember::new(store.clone(), ambient.clone());
        let client = client(member.clone(), &ambient);
        Self {
            ambient,
            members: vec![member],
            stores: vec![store],
            client,
        }
    }

    pub(crate) fn quorum(count: usize) -> Self {
        let ambient = virtual_ambient(1);
        let store = |n: usize| MemoryStore::member(format!("m{n}"), ambient.clone());
        let stores: Vec<_> = (0..count).map(store).collect();
        let faulty = |store: &MemoryStore| FaultyMember::new(store.clone(), ambient.clone());
        let members: Vec<_> = stores.iter().map(faulty).collect();
        // Members in memory answer at once.
        pollster::block_on(quorum_of(&members, &ambient).init()).expect("a set");
        let client = client(met(quorum_of(&members, &ambient)), &ambient);
        Self {
            ambient,
            members,
            stores,
            client,
        }
    }

    /// Another client of the same members, with links of its own.
    pub(crate) fn other_client(&self) -> Client {
        client(met(quorum_of(&self.members, &self.ambient)), &self.ambient)
    }

    /// The quorum without a client.
    pub(crate) fn store(&self) -> Quorum {
        quorum_of(&self.members, &self.ambient)
    }

    /// A claim of nobody's client.
    pub(crate) fn claim(&self, name: &str) -> Claim {
        let info = ClientInfo::of_this_process(&self.ambient, None);
        let wall = self.ambient.clock.wall();
        let owner = Owner::at(info.id, wall, &*self.ambient.entropy);
        let key = Key::new(name).expect("a valid name");
        Claim::new(key, owner, TTL, wall, info.into())
    }

    pub(crate) fn now(&self) -> BootInstant {
        self.ambient.clock.now()
    }

    pub(crate) async fn pass(&self, span: Duration) {
        self.ambient.clock.sleep_until(self.now() + span).await;
    }

    /// Lets whatever was started in the background come to its end.
    pub(crate) async fn settle(&self) {
        self.pass(Duration::from_millis(1)).await;
    }

    pub(crate) fn count(&self, member: usize, matches: impl Fn(&Call) -> bool) -> usize {
        self.members[member]
            .calls()
            .iter()
            .filter(|call| matches(call))
            .count()
    }
}

/// Takes a lock that is free, and frees it again.
pub(crate) async fn take(client: &Client, name: &str) {
    let guard = client.lock(name).try_acquire().await.expect("an answer");
    guard
        .expect("a free lock")
        .release()
        .await
        .expect("an answer");
}

pub(crate) fn quorum_of(members: &[FaultyMember], ambient: &Ambient) -> Quorum {
    let members = members
        .iter()
        .map(|member| Arc::new(member.clone()) as Arc<dyn Member>);
    Quorum::new(members)
        .expect("a valid set")
        .ambient(ambient.clone())
        // Which tests would meet with a gap is chance.
        .foreign_gap(Duration::ZERO)
}

/// The quorum, once it knows its members: as all but the first attempt of a client find it.
fn met(quorum: Quorum) -> Quorum {
    pollster::block_on(quorum.members());
    quorum
}

pub(crate) fn client(store: impl Into<Arc<dyn Store>>, ambient: &Ambient) -> Client {
    Client::builder(store)
        .ambient(ambient.clone())
        .on_current_runtime()
        .build()
}
