use leasehold::Error;
use leasehold::member::MemberHealth;
use leasehold::store::{BoxFuture, Health};
use leasehold_quorum::{Operation, Outcome};

use super::errors::unexpected;
use super::session::RedisSession;

impl Health for RedisSession {
    fn members(&self) -> BoxFuture<'_, Vec<MemberHealth>> {
        Box::pin(async {
            match self.ask_health().await {
                Ok(mut health) => {
                    // The engine has the members in the order of their ids.
                    let place =
                        |it: &MemberHealth| self.store.member_ids().position(|id| *id == it.id);
                    health.sort_by_key(place);
                    health
                }
                Err(error) => {
                    let failed = |id: &_| MemberHealth::new(Clone::clone(id), Err(error.clone()));
                    self.store.member_ids().map(failed).collect()
                }
            }
        })
    }
}

impl RedisSession {
    async fn ask_health(&self) -> Result<Vec<MemberHealth>, Error> {
        match self.driver()?.start(Operation::Health).await {
            Outcome::Health(health) => Ok(health),
            Outcome::Failed(error) => Err(error),
            _ => Err(unexpected()),
        }
    }
}
