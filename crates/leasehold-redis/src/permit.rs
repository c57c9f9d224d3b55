//! Permits: what is asked for one, and what a refusal says of them.

use leasehold::{Busy, Claim, Error, ErrorKind, Mode, Permits, Slot, Slots};

use crate::attempt::garbled;
use crate::connection::Answer;
use crate::wire::LockValue;

/// Refuses a claim on a permit that is not there.
pub(crate) fn check(claim: &Claim) -> Result<(), Error> {
    match (claim.mode, claim.slot) {
        (Mode::Permit(permits), Some(slot)) => Slot::new(slot.get(), permits).map(drop),
        _ => Ok(()),
    }
}

/// The permit that `claim` wants, as the scripts want it.
pub(crate) fn wish(claim: &Claim) -> String {
    claim.slot.map_or_else(String::new, |slot| slot.to_string())
}

/// Adds to `busy`, the refusal of `claim`, which other permits it could have: `listed` says so where some
/// are held.
pub(crate) fn with_free(
    mut busy: Busy,
    claim: &Claim,
    value: &Answer,
    listed: Option<&Answer>,
) -> Result<Busy, Error> {
    let Mode::Permit(permits) = claim.mode else {
        return Ok(busy);
    };
    let found = match value {
        Answer::Text(value) => Some(LockValue::read(value)),
        _ => None,
    };
    busy.free = match found {
        Some(LockValue::Permits(others)) if others != permits => {
            return Err(Error::new(
                ErrorKind::PermitsDiffer,
                format!("the lock is in use with {others} permits, not {permits}"),
            ));
        }
        Some(LockValue::Permits(_)) => {
            read_free(listed, permits).ok_or_else(|| garbled("the script of an attempt"))?
        }
        _ => Slots::default(),
    };
    Ok(busy)
}

pub(crate) fn read_free(listed: Option<&Answer>, permits: Permits) -> Option<Slots> {
    let slots = listed?.as_list()?.iter();
    let slots = slots.map(|slot| {
        let number = u32::try_from(slot.as_integer()?).ok()?;
        Slot::new(number, permits).ok()
    });
    slots.collect()
}
