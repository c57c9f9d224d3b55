use leasehold::Error;
use leasehold::store::{BoxFuture, Health, MemberHealth};
use leasehold_quorum::Outcome;

use super::RedisStore;
use super::errors::unexpected;

impl Health for RedisStore {
    fn members(&self) -> BoxFuture<'_, Vec<MemberHealth>> {
        Box::pin(async {
            match self.ask_health().await {
                Ok(mut health) => {
                    // The engine has the members in the order of their ids.
                    let place = |it: &MemberHealth| self.member_ids().position(|id| *id == it.id);
                    health.sort_by_key(place);
                    health
                }
                Err(error) => {
                    let failed = |id: &_| MemberHealth::new(Clone::clone(id), Err(error.clone()));
                    self.member_ids().map(failed).collect()
                }
            }
        })
    }
}

impl RedisStore {
    async fn ask_health(&self) -> Result<Vec<MemberHealth>, Error> {
        match self.any_session()?.driver.health().await {
            Outcome::Health(health) => Ok(health),
            Outcome::Failed(error) => Err(error),
            _ => Err(unexpected()),
        }
    }
}
