use std::time::Duration;

use crate::ballot::majority;
use crate::member::index::{MemberIndex, PerMember};
use crate::trust::untrusted::{ClockFault, Skew, UntrustedReason};
use leasehold_types::{BootInstant, WallTime};
use typed_index_collections::ti_vec;

/// A member's clock, read at some moment between two instants of this client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) clock: WallTime,
    pub(crate) sent: BootInstant,
    pub(crate) received: BootInstant,
}

/// Whether each member's clock agrees with this client's clock and with those of the other members.
///
/// A member whose clock was stepped ends leases too early or too late. A comparison with this client's
/// clock since the last reading, and with the lower median of all clocks, finds such a member. If a
/// majority moved together against this client's clock, this client was stopped.
#[derive(Debug)]
pub(crate) struct Clocks {
    tolerance: Duration,
    max_ttl: Duration,
    tracks: PerMember<Track>,
    /// No clock is out for answers to requests that were sent then or later.
    out_until: BootInstant,
}

#[derive(Clone, Debug, Default)]
struct Track {
    last: Option<Reading>,
    out: Option<Out>,
}

#[derive(Clone, Copy, Debug)]
struct Out {
    what: ClockFault,
    noticed: BootInstant,
    until: BootInstant,
}

impl Clocks {
    pub(crate) fn new(members: usize, tolerance: Duration, max_ttl: Duration) -> Self {
        Self {
            tolerance,
            max_ttl,
            out_until: BootInstant::from_nanos(0),
            tracks: ti_vec![Track::default(); members],
        }
    }

    /// Judges the clocks anew, by the limits that the members state.
    pub(crate) fn set_limits(&mut self, tolerance: Duration, max_ttl: Duration, now: BootInstant) {
        (self.tolerance, self.max_ttl) = (tolerance, max_ttl);
        for track in &mut self.tracks {
            track.out = track
                .out
                .filter(|out| matches!(out.what, ClockFault::Stepped(_)))
                .map(|out| Out {
                    until: out.noticed + max_ttl,
                    ..out
                });
        }
        let untils = self
            .tracks
            .iter()
            .filter_map(|track| Some(track.out?.until));
        self.out_until = untils.max().unwrap_or(self.out_until);
        self.compare(now);
    }

    /// Takes in a reading. Returns a span if a majority moved ahead of this client by at least that much.
    /// Then this client was stopped for that span, and the caller sets its clock ahead.
    pub(crate) fn read(&mut self, member: MemberIndex, reading: Reading) -> Option<Duration> {
        let now = reading.received;
        let last = self.tracks[member].last;
        // An older reading that arrives late adds nothing to a newer one.
        if last.is_some_and(|last| reading.sent < last.sent) {
            return None;
        }
        let step = last
            .filter(|last| now.since(last.received) <= self.max_ttl)
            .and_then(|last| step(last, reading));
        self.tracks[member].last = Some(reading);
        let mut paused = None;
        if let Some(by) = step {
            self.put_out(member, ClockFault::Stepped(by), now, now + self.max_ttl);
            paused = self.moved_together(by, now);
        }
        self.compare(now);
        paused
    }

    /// Returns whether an answer to a request that was sent at `sent` counts.
    pub(crate) fn verdict(
        &self,
        member: MemberIndex,
        sent: BootInstant,
    ) -> Result<(), UntrustedReason> {
        match self.tracks[member].out {
            Some(Out { what, until, .. }) if sent < until => {
                Err(UntrustedReason::WrongClock { what, until })
            }
            _ => Ok(()),
        }
    }

    fn put_out(
        &mut self,
        member: MemberIndex,
        what: ClockFault,
        noticed: BootInstant,
        until: BootInstant,
    ) {
        self.out_until = self.out_until.max(until);
        self.tracks[member].out = Some(Out {
            what,
            noticed,
            until,
        });
    }

    /// Returns a span if a majority was just seen to step by about the same amount: then this client was
    /// stopped. In any case such members all count again.
    fn moved_together(&mut self, by: Skew, now: BootInstant) -> Option<Duration> {
        let alike = |track: &Track| match track.out {
            Some(Out {
                what: ClockFault::Stepped(theirs),
                noticed,
                ..
            }) if now.since(noticed) <= TOGETHER
                && theirs.0.abs_diff(by.0) <= micros(self.tolerance) =>
            {
                Some(theirs)
            }
            _ => None,
        };
        let steps: Vec<Option<Skew>> = self.tracks.iter().map(alike).collect();
        if steps.iter().flatten().count() < majority(self.tracks.len()) {
            return None;
        }
        let least = steps.iter().flatten().min().copied()?;
        // If this client's clock ran ahead, no harm is done: its deadlines come too early.
        let paused = (least.0 > 0).then(|| least.span());
        for (track, step) in self.tracks.iter_mut().zip(&steps) {
            if step.is_some() {
                track.out = None;
                // The reading came after the stop, and before this client's clock was set ahead.
                if let (Some(last), Some(span)) = (&mut track.last, paused) {
                    last.sent = last.sent + span;
                    last.received = last.received + span;
                }
            }
        }
        paused
    }

    /// Excludes the members that are too far from the lower median, if a majority was heard recently.
    fn compare(&mut self, now: BootInstant) {
        let fresh = |track: &Track| {
            track
                .last
                .filter(|last| now.since(last.received) <= self.max_ttl)
        };
        if self.agree(self.tracks.iter().filter_map(fresh)) {
            return;
        }
        let readings: PerMember<Option<Reading>> = self.tracks.iter().map(fresh).collect();
        let mut recent: Vec<Reading> = readings.iter().flatten().copied().collect();
        if recent.len() < majority(self.tracks.len()) {
            return;
        }
        // If only two differ, there is no telling which one is wrong, so neither stays excluded.
        let until = if recent.len() < 3 {
            now
        } else {
            now + self.max_ttl
        };
        recent.sort_by_key(Reading::offset);
        let median = recent[(recent.len() - 1) / 2];
        for (member, reading) in readings.iter_enumerated() {
            let Some(reading) = reading else { continue };
            let gap = reading.gap(&median);
            let already = self.tracks[member]
                .out
                .is_some_and(|out| now < out.until && reading.received <= out.noticed);
            if gap.span() > self.tolerance && !already {
                self.put_out(member, ClockFault::Apart(gap), now, until);
            }
        }
    }

    /// Whether all readings are within the tolerance of each other. Then none is too far from the median.
    fn agree(&self, readings: impl Iterator<Item = Reading>) -> bool {
        let all = readings.map(|reading| reading.bounds()).reduce(|all, one| {
            let (least, most) = all;
            (least.max(one.0), most.min(one.1))
        });
        all.is_none_or(|(least, most)| {
            Skew(least.saturating_sub(most).max(0)).span() <= self.tolerance
        })
    }

    /// Whether the clock of every member is believed for answers to requests that were sent at `sent`.
    pub(crate) fn all_believed(&self, sent: BootInstant) -> bool {
        let is_out = |track: &Track| track.out.is_some_and(|out| sent < out.until);
        sent >= self.out_until || !self.tracks.iter().any(is_out)
    }
}

impl Reading {
    /// How far the member's clock is ahead of this client's, at least and at most, in microseconds.
    fn bounds(&self) -> (i64, i64) {
        let clock = signed(self.clock.as_micros());
        let least = clock.saturating_sub(boot_micros(self.received));
        let most = clock.saturating_sub(boot_micros(self.sent));
        (least, most)
    }

    fn offset(&self) -> i64 {
        let (least, most) = self.bounds();
        least / 2 + most / 2
    }

    /// The smallest possible difference between the two clocks.
    fn gap(&self, other: &Self) -> Skew {
        let ((least, most), (other_least, other_most)) = (self.bounds(), other.bounds());
        Skew(if least > other_most {
            least.saturating_sub(other_most)
        } else if most < other_least {
            most.saturating_sub(other_least)
        } else {
            0
        })
    }
}

/// By how much more, or less, the clock moved between two readings than this client's clock can have moved.
fn step(last: Reading, reading: Reading) -> Option<Skew> {
    // Neither is negative, so the difference cannot overflow.
    let moved = signed(reading.clock.as_micros()) - signed(last.clock.as_micros());
    let least = micros_between(last.received, reading.sent);
    let most = micros_between(last.sent, reading.received);
    let slack = most / 100 + SLACK_MICROS;
    if moved > most + slack {
        Some(Skew(moved.saturating_sub(most)))
    } else if moved < least - slack {
        Some(Skew(moved.saturating_sub(least)))
    } else {
        None
    }
}

fn micros_between(from: BootInstant, to: BootInstant) -> i64 {
    boot_micros(to) - boot_micros(from)
}

fn boot_micros(instant: BootInstant) -> i64 {
    signed(instant.as_nanos() / 1_000)
}

/// Converts a clock to a signed number. A server may report any number; too large ones become the maximum.
fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// A server may answer with a clock that it read a moment before.
const SLACK_MICROS: i64 = 5_000;

/// Steps that are noticed within this span may share a cause.
const TOGETHER: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    /// What a real server shows, in microseconds since 1970.
    const NOW: u64 = 1_763_637_400_000_000;

    const EXTREMES: [u64; 7] = [
        0,
        1,
        i64::MAX as u64 - 1,
        i64::MAX as u64,
        i64::MAX as u64 + 1,
        u64::MAX - 1,
        u64::MAX,
    ];

    fn reading(clock: u64, at: BootInstant) -> Reading {
        Reading {
            clock: WallTime::from_micros(clock),
            sent: at,
            received: at,
        }
    }

    #[test]
    fn impossible_clock_readings_distrust_only_their_server() {
        for (first, second) in EXTREMES.iter().flat_map(|a| EXTREMES.map(|b| (*a, b))) {
            let tolerance = Duration::from_millis(250);
            let mut clocks = Clocks::new(3, tolerance, Duration::from_secs(60));
            let mut now = BootInstant::from_nanos(3_600_000_000_000);
            for wrong in [first, second] {
                for (member, clock) in [NOW, wrong, NOW].into_iter().enumerate() {
                    assert_eq!(clocks.read(member.into(), reading(clock, now)), None);
                }
            }
            now = now + Duration::from_millis(1);
            let trusted = [0, 1, 2].map(|member| clocks.verdict(member.into(), now).is_ok());
            assert_eq!(trusted, [true, false, true], "{first}, then {second}");
        }
    }

    #[test]
    fn clocks_at_both_ends_are_compared_without_overflow() {
        for clocks in EXTREMES.map(|a| EXTREMES.map(|b| EXTREMES.map(|c| [a, b, c]))) {
            for shown in clocks.as_flattened() {
                let mut clocks = Clocks::new(3, Duration::ZERO, Duration::MAX);
                for at in [0, u64::MAX] {
                    for (member, clock) in shown.iter().enumerate() {
                        clocks.read(member.into(), reading(*clock, BootInstant::from_nanos(at)));
                    }
                }
            }
        }
    }
}
