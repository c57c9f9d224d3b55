//! Breaks a lock.

use std::sync::Arc;

use super::Client;
use crate::lease::ClientContext;
use crate::store::{BreakOptions, BreakOutcome, BreakRecord};
use crate::types::{Error, ErrorKind, Fence, Holder, Key, Mode, Owner};

impl Client {
    /// Takes the lock `name` from its holder, provided that it holds the lock alone and with this `fence`,
    /// as [`holders`](Self::holders) showed it. A client that acquired the lock in the meantime is not
    /// affected.
    ///
    /// The next renewal reports the loss to the holder: its guard is lost with
    /// [`LostReason::Broken`](crate::LostReason::Broken). [`BreakOptions`] says when others may enter. The store
    /// keeps a record of the break for [`BreakRecord::KEPT`], and the client emits one tracing event.
    ///
    /// # Errors
    ///
    /// An invalid name. [`ErrorKind::Unsupported`] if the store cannot take a lock from its holder (see
    /// [`Session::admin`](crate::store::Session::admin)), or if several clients hold it together. The
    /// effect is `Unknown` if its holder has made it shared in the meantime; the holder then loses its
    /// share. A store that does not answer; the effect is `Unknown` if the lock may be broken. On a quorum
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
    /// use leasehold::store::{BreakOptions, BreakOutcome};
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
        fence: Fence,
        how: BreakOptions,
    ) -> Result<BreakOutcome, Error> {
        let key = Key::new(name)?;
        let context = Arc::clone(&self.core.context);
        self.core
            .run(async move { break_lock(&context, &key, fence, how).await })?
            .await
    }

    /// Returns the holder whose lease [`break_lock`](Self::break_lock) could break, with the fence that
    /// identifies it; `None` if the lock is free.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] if the lease cannot be broken: the store offers no way, several clients
    /// share the lock, or a client of another library holds it. Also if a store, or a majority of its
    /// members, does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn breakable(&self, name: impl AsRef<str>) -> Result<Option<Holder>, Error> {
        let key = Key::new(name)?;
        let context = Arc::clone(&self.core.context);
        let found = self
            .core
            .run(async move { breakable(&context, &key).await })?
            .await;
        Ok(found?.map(|(holder, _)| holder))
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
            .run(async move {
                match context.session.admin() {
                    Some(admin) => admin.last_break(&key).await,
                    None => Ok(None),
                }
            })?
            .await
    }
}

async fn break_lock(
    context: &ClientContext,
    key: &Key,
    fence: Fence,
    how: BreakOptions,
) -> Result<BreakOutcome, Error> {
    let Some((holder, owner)) = breakable(context, key).await? else {
        return Ok(BreakOutcome::Free);
    };
    if holder.fence != Some(fence) {
        return Ok(BreakOutcome::HeldBy(Box::new(holder)));
    }
    let at = context.env.clock.wall();
    // An owner has exactly one fence. If the fence is different by now, so is the owner.
    let record = how.record(owner, fence, Arc::clone(&context.info), at);
    let broken = context
        .admin()?
        .break_lease(key, &record)
        .await
        .map_err(|error| error.with_key(key))?;
    if !broken.existed {
        let holders = context.inspection()?.holders(key).await?;
        if holders.iter().any(|holder| holder.owner == Some(owner)) {
            // The holder made it shared in the meantime. The store marks the owner all the same, and
            // refuses its next renewal.
            let text = "the holder has downgraded the lock to shared mode; its next renewal reports the \
                        loss, and the lease lasts until its normal end";
            let error = Error::new(ErrorKind::Unsupported, text);
            return Err(error.with_unknown_effect().with_key(key));
        }
        return Ok(match breakable(context, key).await? {
            Some((holder, _)) => BreakOutcome::HeldBy(Box::new(holder)),
            None => BreakOutcome::Free,
        });
    }
    tracing::info!(%key, %fence, by = %record, at_once = record.at_once, "lock broken");
    Ok(BreakOutcome::Done(broken, Box::new(record)))
}

/// Returns the holder whose lease can be broken, with its owner; `None` if the lock is free.
async fn breakable(context: &ClientContext, key: &Key) -> Result<Option<(Holder, Owner)>, Error> {
    if context.session.inspection().is_none() {
        // If both traits are absent, the error is about breaking.
        context.admin()?;
    }
    let holders = context.inspection()?.holders(key).await?;
    if holders.is_empty() {
        return Ok(None);
    }
    let refused = |text: String| Err(Error::new(ErrorKind::Unsupported, text).with_key(key));
    if context.session.admin().is_none() {
        let error = context.unsupported(unbreakable(&holders));
        return Err(error.with_key(key));
    }
    let Some(holder) = the_only(&holders) else {
        let who = match holders.len() {
            1 => "its holder shares it".to_owned(),
            count => format!("{count} holders share it"),
        };
        return refused(format!(
            "{who}: only an exclusive lock can be broken; each lease ends by itself once its holder is gone"
        ));
    };
    let Some(owner) = holder.owner else {
        return refused(format!(
            "held by {holder}, whose lock leasehold cannot break: it has no fence; release it with that \
             library, or delete the key once its program is gone"
        ));
    };
    Ok(Some((holder.clone(), owner)))
}

/// The holder, if it is the only one and holds the lock alone.
fn the_only(holders: &[Holder]) -> Option<&Holder> {
    match holders {
        [only] if only.mode == Mode::Exclusive => Some(only),
        _ => None,
    }
}

fn unbreakable(holders: &[Holder]) -> String {
    let named: Vec<String> = holders.iter().take(3).map(Holder::to_string).collect();
    format!(
        "cannot take a lock from its holder: end the process that holds it, and it is free; held by {}",
        named.join(" and ")
    )
}
