//! Removing what outlives the use of a lock.

use leasehold::{Error, Key};

use crate::attempt::garbled;
use crate::connection::{Answer, Link};
use crate::member::RedisMember;
use crate::scripts::{FORGET, RIGHTS};
use crate::wire::Records;

/// How many locks one write is about: other clients of the server are served in between.
const AT_ONCE: usize = 64;

impl RedisMember {
    /// Removes what is left of those of `keys` that nobody holds or waits for, with their fence counters,
    /// and returns the others. For names that were made up for a while, as for a measurement: a counter would stay for
    /// seven days.
    ///
    /// Whoever uses such a name again gets fences that are greater than the old ones as far as the
    /// clients' wall clocks are in order.
    ///
    /// # Errors
    ///
    /// A server that does not answer or refuses; each counter may or may not have been removed.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; each counter may or may not have been removed.
    pub async fn forget(&self, keys: &[Key]) -> Result<Vec<Key>, Error> {
        let forgotten = self.try_forget(keys).await;
        forgotten.map_err(|error| self.named(error))
    }

    async fn try_forget(&self, keys: &[Key]) -> Result<Vec<Key>, Error> {
        let link = self.link().await?;
        let mut in_use = Vec::new();
        for part in keys.chunks(AT_ONCE) {
            let calls = part.iter().map(|key| {
                let records = self.records_of(key);
                FORGET.call(&names(&records), &[] as &[&str])
            });
            let answers = link.run(&FORGET, calls.collect()).await?;
            // Who uses such a name again begins a counter anew, and with it its rest time.
            link.rests().forget();
            for (key, answer) in part.iter().zip(&answers) {
                if !read(answer, &link)? {
                    in_use.push(key.clone());
                }
            }
        }
        Ok(in_use)
    }
}

fn names(records: &Records) -> [String; 6] {
    [
        records.lock.clone(),
        records.fence().concat(),
        records.readers().concat(),
        records.queue().concat(),
        records.slots().concat(),
        records.offered().concat(),
    ]
}

/// Whether nothing is left.
fn read(answer: &Answer, link: &Link) -> Result<bool, Error> {
    match answer {
        Answer::Integer(left) => Ok(*left == 1),
        Answer::Refused(refusal) => Err(refusal.to_error(link.user(), RIGHTS)),
        _ => Err(garbled("EVALSHA")),
    }
}
