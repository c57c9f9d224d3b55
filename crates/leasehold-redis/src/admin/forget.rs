//! Deletes the keys that outlive the use of a lock.

use leasehold::{Error, Key};

use super::server::Server;
use crate::codec::write_call;
use crate::scripts::FORGET;

/// How many locks one write handles. The server serves other clients in between.
const AT_ONCE: usize = 64;

impl Server {
    /// Deletes the fence counters of those `keys` that are not in use, and returns the others.
    pub(crate) async fn forget(&self, keys: &[Key]) -> Result<Vec<Key>, Error> {
        let mut in_use = Vec::new();
        for part in keys.chunks(AT_ONCE) {
            let answers = self
                .call(&FORGET, |out| {
                    for key in part {
                        write_call(&FORGET, &self.names(key), None, out);
                    }
                })
                .await?;
            for (key, answer) in part.iter().zip(&answers) {
                match self.accepted(Some(answer))?.as_integer() {
                    Some(1) => {}
                    Some(_) => in_use.push(key.clone()),
                    None => return Err(self.invalid_response("EVALSHA")),
                }
            }
        }
        Ok(in_use)
    }
}
