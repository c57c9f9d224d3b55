use leasehold::{
    Attempt, BoxFuture, CardEdit, Claim, Departure, Ear, Error, Fence, Held, Key, Life, Member,
    MemberId, Owner, Presence, Release, Renewal, Sampled, Seal, Turn,
};

use super::RedisMember;
use crate::{card, lease, presence, queue};

impl Member for RedisMember {
    fn id(&self) -> &MemberId {
        &self.connector.url().id
    }

    fn acquire_in_turn<'a>(
        &'a self,
        claim: &'a Claim,
        turn: &'a Turn,
    ) -> BoxFuture<'a, Result<Attempt, Error>> {
        Box::pin(async {
            let attempt = self.try_acquire_in_turn(claim, turn).await;
            attempt.map_err(|error| self.named(error))
        })
    }

    fn depart<'a>(
        &'a self,
        claim: &'a Claim,
        departure: &'a Departure,
    ) -> BoxFuture<'a, Result<Release, Error>> {
        Box::pin(async {
            let departed = self.try_depart(claim, departure).await;
            departed.map_err(|error| self.named(error))
        })
    }

    fn leave_queue<'a>(&'a self, key: &'a Key, waiter: Owner) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let left = self.try_leave_queue(key, waiter).await;
            left.map_err(|error| self.named(error))
        })
    }

    fn listen(&self, ear: Ear) {
        self.connector.listener().listen(ear);
    }

    fn seal<'a>(
        &'a self,
        claim: &'a Claim,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Sampled<Seal>, Error>> {
        Box::pin(async move {
            let sealed = self.try_seal(claim, fence).await;
            sealed.map_err(|error| self.named(error))
        })
    }

    fn renew_sampled<'a>(
        &'a self,
        leases: &'a [Held],
    ) -> BoxFuture<'a, Result<Sampled<Vec<Renewal>>, Error>> {
        Box::pin(async {
            let renewed = self.try_renew(leases).await;
            let mut renewed = renewed.map_err(|error| self.named(error))?;
            for answer in &mut renewed.answer {
                if let Renewal::Unknown(error) = answer {
                    *error = self.named(error.clone());
                }
            }
            Ok(renewed)
        })
    }

    fn heal<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async {
            let healed = self.try_heal(leases).await;
            healed.map_err(|error| self.named(error))
        })
    }

    fn presence(&self) -> BoxFuture<'_, Result<Presence, Error>> {
        Box::pin(async {
            let presence = self.try_presence().await;
            presence.map_err(|error| self.named(error))
        })
    }

    fn write_card<'a>(&'a self, edit: &'a CardEdit) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async {
            let written = self.try_write_card(edit).await;
            written.map_err(|error| self.named(error))
        })
    }

    fn witness<'a>(&'a self, seen: &'a [(MemberId, Life)]) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async {
            let noted = self.try_witness(seen).await;
            noted.map_err(|error| self.named(error))
        })
    }
}

impl RedisMember {
    async fn try_acquire_in_turn(&self, claim: &Claim, turn: &Turn) -> Result<Attempt, Error> {
        let link = self.link().await?;
        let now = self.ambient.clock.now();
        queue::acquire(&link, &self.records_of(&claim.key), claim, turn, now).await
    }

    async fn try_depart(&self, claim: &Claim, departure: &Departure) -> Result<Release, Error> {
        let link = self.link().await?;
        let now = self.ambient.clock.now();
        queue::depart(&link, &self.records_of(&claim.key), claim, departure, now).await
    }

    async fn try_leave_queue(&self, key: &Key, waiter: Owner) -> Result<(), Error> {
        let link = self.link().await?;
        queue::leave(&link, &self.records_of(key), waiter).await
    }

    async fn try_seal(&self, claim: &Claim, fence: Fence) -> Result<Sampled<Seal>, Error> {
        let link = self.link().await?;
        lease::seal(&link, &self.records_of(&claim.key), claim, fence).await
    }

    async fn try_renew(&self, leases: &[Held]) -> Result<Sampled<Vec<Renewal>>, Error> {
        let link = self.link().await?;
        let prefix = &self.connector.url().prefix;
        lease::renew(&link, prefix, leases, self.ambient.clock.now()).await
    }

    async fn try_heal(&self, leases: &[Held]) -> Result<(), Error> {
        let link = self.link().await?;
        lease::heal(&link, &self.connector.url().prefix, leases).await
    }

    async fn try_presence(&self) -> Result<Presence, Error> {
        let asked = self.ambient.clock.now();
        let link = self.link().await?;
        presence::presence(&link, asked).await
    }

    async fn try_write_card(&self, edit: &CardEdit) -> Result<bool, Error> {
        let link = self.link().await?;
        card::write(&link, edit).await
    }

    async fn try_witness(&self, seen: &[(MemberId, Life)]) -> Result<(), Error> {
        let link = self.link().await?;
        card::witness(&link, seen).await
    }
}
