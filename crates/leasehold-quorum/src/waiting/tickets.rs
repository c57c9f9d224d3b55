//! Which ticket a wait gets. Tickets follow the members' clocks, so that all clients draw from one sequence.

use std::time::Duration;

use leasehold_types::{BootInstant, Owner, Ticket, WallTime};
use typed_index_collections::ti_vec;

use crate::member::index::{MemberIndex, PerMember};

/// What is known about the members' clocks, and the last ticket drawn.
#[derive(Debug)]
pub(crate) struct Tickets {
    readings: PerMember<Option<Reading>>,
    last: WallTime,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    clock: WallTime,
    at: BootInstant,
}

/// An older reading is not used, and the clock is read again: it may have been set since.
const FRESH: Duration = Duration::from_secs(10);

impl Tickets {
    pub(crate) fn new(members: usize) -> Self {
        Self {
            readings: ti_vec![None; members],
            last: WallTime::from_micros(0),
        }
    }

    /// A member's clock showed `clock` at some moment between `sent` and `received`.
    pub(crate) fn read(
        &mut self,
        member: MemberIndex,
        clock: WallTime,
        sent: BootInstant,
        received: BootInstant,
    ) {
        let at = sent + received.since(sent) / 2;
        self.readings[member] = Some(Reading { clock, at });
    }

    /// Returns the ticket of a wait that begins at `now`: the lower median of the members' clocks. It is
    /// later than every ticket drawn here before, so that the waits of one client keep their exact order.
    /// Returns `None` if no clock was read recently.
    pub(crate) fn draw(&mut self, waiter: Owner, now: BootInstant) -> Option<Ticket> {
        let fresh = self.readings.iter().flatten();
        let fresh = fresh.filter(|reading| now.since(reading.at) <= FRESH);
        let mut clocks: Vec<u64> = fresh.map(|reading| reading.clock_at(now)).collect();
        clocks.sort_unstable();
        let median = *clocks.get(clocks.len().checked_sub(1)? / 2)?;
        let next = self.last.as_micros().saturating_add(1);
        self.last = WallTime::from_micros(median.max(next));
        Some(Ticket {
            since: self.last,
            waiter,
        })
    }
}

impl Reading {
    fn clock_at(&self, now: BootInstant) -> u64 {
        let micros = u64::try_from(now.since(self.at).as_micros()).unwrap_or(u64::MAX);
        self.clock.as_micros().saturating_add(micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::values::RandomEntropy;
    use leasehold_types::ClientId;

    fn at(millis: u64) -> BootInstant {
        BootInstant::from_nanos(millis * 1_000_000)
    }

    fn drawn(tickets: &mut Tickets, now: u64) -> Option<u64> {
        let waiter = Owner::random(ClientId::random(&RandomEntropy), &RandomEntropy);
        Some(tickets.draw(waiter, at(now))?.since.as_micros())
    }

    #[test]
    fn ticket_is_lower_median_of_current_clocks() {
        let mut tickets = Tickets::new(4);
        assert_eq!(drawn(&mut tickets, 0), None, "no clock was read");
        for (member, clock) in [90_000, 10_000, 20_000, 30_000].into_iter().enumerate() {
            tickets.read(
                member.into(),
                WallTime::from_micros(clock),
                at(100),
                at(102),
            );
        }
        assert_eq!(drawn(&mut tickets, 102), Some(21_000));
        assert_eq!(drawn(&mut tickets, 111), Some(30_000));
    }

    #[test]
    fn tickets_of_one_client_never_go_back() {
        let mut tickets = Tickets::new(1);
        tickets.read(0.into(), WallTime::from_micros(50_000), at(100), at(100));
        assert_eq!(drawn(&mut tickets, 100), Some(50_000));
        tickets.read(0.into(), WallTime::from_micros(40_000), at(101), at(101));
        assert_eq!(drawn(&mut tickets, 101), Some(50_001));
    }

    #[test]
    fn tickets_stop_at_the_largest_clock_reading() {
        let mut tickets = Tickets::new(1);
        tickets.read(0.into(), WallTime::from_micros(u64::MAX), at(100), at(100));
        assert_eq!(drawn(&mut tickets, 100), Some(u64::MAX));
        assert_eq!(drawn(&mut tickets, 101), Some(u64::MAX));
    }

    #[test]
    fn an_old_reading_is_of_no_use() {
        let mut tickets = Tickets::new(1);
        tickets.read(0.into(), WallTime::from_micros(50_000), at(100), at(100));
        assert_eq!(drawn(&mut tickets, 10_101), None);
    }
}
