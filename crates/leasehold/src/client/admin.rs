//! Breaks a lock.

use std::sync::Arc;

use super::Client;
use crate::lease::ClientContext;
use crate::types::{
    BreakOptions, BreakOutcome, BreakRecord, BreakTarget, Error, ErrorKind, Fence, Holder, Key,
};

impl Client {
    /// Takes the lock `name` from one of its holders: the one with this fence or this owner, as
    /// [`holders`](Self::holders) showed it. Other holders, and a client that acquired the lock in the meantime, are not
    /// affected.
    ///
    /// The next renewal reports the loss to the holder: its guard is lost with
    /// [`LostReason::Broken`](crate::LostReason::Broken). [`BreakOptions`] says when others may enter. They also may once the
    /// holder has released the guard, which says that its work has ended. The store
    /// keeps a record of the break for [`BreakRecord::KEPT`], and the client emits one tracing event.
    ///
    /// # Errors
    ///
    /// An invalid name. [`ErrorKind::Unsupported`] if the store cannot take a lock from its holder (see
    /// [`Session::admin`](crate::store::Session::admin)), or if a client of another library holds it.
    /// A store that does not answer; the effect is `Unknown` if the lease may be broken. On a quorum
    /// a majority must carry out the break. Calling again is fine.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the lock may or may not be broken then.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, memory::MemoryStore};
    /// use leasehold::look::{BreakOptions, BreakOutcome};
    ///
    /// let store = MemoryStore::new();
    /// let (holder, operator) = (Client::new(store.clone()), Client::new(store));
    /// let guard = holder.lock("deploy").acquire().await?;
    ///
    /// let shown = operator.holders("deploy").await?[0].fence.unwrap();
    /// let how = BreakOptions::at_once().because("its host is gone")?;
    /// let outcome = operator.break_lock("deploy", shown, how).await?;
    /// assert!(matches!(outcome, BreakOutcome::Done(..)));
    /// let next = operator.lock("deploy").acquire().await?;
    /// assert!(next.fence() > guard.fence());
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    #[doc(alias = "force")]
    #[doc(alias = "steal")]
    #[doc(alias = "unlock")]
    pub async fn break_lock(
        &self,
        name: impl AsRef<str>,
        lease: impl Into<BreakTarget>,
        how: BreakOptions,
    ) -> Result<BreakOutcome, Error> {
        let (key, target) = (Key::new(name)?, lease.into());
        let context = Arc::clone(&self.core.context);
        self.core
            .ask(Some(key.clone()), async move {
                break_lock(&context, &key, target, how).await
            })
            .await
    }

    /// Returns the holders whose leases [`break_lock`](Self::break_lock) could break, with the fence or the owner that
    /// identifies each; none if the lock is free.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] if no lease can be broken: the store offers no way, or a client of another library holds
    /// the lock. Also if a store, or a majority of its members, does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn breakable(&self, name: impl AsRef<str>) -> Result<Vec<Holder>, Error> {
        let key = Key::new(name)?;
        let context = Arc::clone(&self.core.context);
        self.core
            .ask(
                Some(key.clone()),
                async move { breakable(&context, &key).await },
            )
            .await
    }

    /// Returns the record of the last break of the lock `name`, as long as the store keeps it; always
    /// `None` if the store cannot break locks. For display only. A quorum also returns a break that reached
    /// only a minority and has no effect; [`Holder::broken`] shows whether it took effect.
    ///
    /// # Errors
    ///
    /// An invalid name, or a store that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn last_break(&self, name: impl AsRef<str>) -> Result<Option<BreakRecord>, Error> {
        let (key, context) = (Key::new(name)?, Arc::clone(&self.core.context));
        self.core
            .ask(Some(key.clone()), async move {
                match context.session.admin() {
                    Some(admin) => admin.last_break(&key).await,
                    None => Ok(None),
                }
            })
            .await
    }
}

async fn break_lock(
    context: &ClientContext,
    key: &Key,
    target: BreakTarget,
    how: BreakOptions,
) -> Result<BreakOutcome, Error> {
    let holders = breakable(context, key).await?;
    let meant = holders.iter().find(|holder| target.is(holder));
    let Some((fence, owner)) = meant.and_then(|holder| Some((holder.fence, holder.owner?))) else {
        return Ok(without_target(holders));
    };
    let at = context.env.clock.wall();
    // An owner has exactly one lease. A later lease has another owner.
    let record = how.record(owner, fence, Arc::clone(&context.info), at);
    let broken = context.admin()?.break_lease(key, &record).await?;
    if !broken.existed {
        return Ok(without_target(breakable(context, key).await?));
    }
    // With its owner, any client could release a lease.
    let (fence, holder) = (fence.map(Fence::get), owner.client());
    tracing::info!(%key, fence, %holder, by = %record, at_once = record.at_once, "lock broken");
    Ok(BreakOutcome::Done(broken, Box::new(record)))
}

fn without_target(holders: Vec<Holder>) -> BreakOutcome {
    match holders.is_empty() {
        true => BreakOutcome::Free,
        false => BreakOutcome::HeldBy(holders),
    }
}

/// Returns the holders whose leases can be broken; none if the lock is free.
async fn breakable(context: &ClientContext, key: &Key) -> Result<Vec<Holder>, Error> {
    if context.session.inspection().is_none() {
        // If both traits are absent, the error is about breaking.
        context.admin()?;
    }
    let holders = context.inspection()?.holders(key).await?;
    if holders.is_empty() {
        return Ok(holders);
    }
    if context.session.admin().is_none() {
        return Err(context.unsupported(unbreakable(&holders)));
    }
    match holders.iter().find(|holder| holder.owner.is_none()) {
        None => Ok(holders),
        Some(holder) => {
            let text = format!(
                "held by {holder}, whose lock leasehold cannot break: it has no fence; release it with that \
                 library, or delete the key once its program is gone"
            );
            Err(Error::new(ErrorKind::Unsupported, text))
        }
    }
}

fn unbreakable(holders: &[Holder]) -> String {
    let named: Vec<String> = holders.iter().take(3).map(Holder::to_string).collect();
    format!(
        "cannot take a lock from its holder: end the process that holds it, and it is free; held by {}",
        named.join(" and ")
    )
}
