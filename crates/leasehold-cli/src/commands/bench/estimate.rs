use std::fmt;
use std::time::Duration;

use super::cpu_usage::CpuUsage;
use super::statistics::Spread;

/// The limit of a rate, as this client can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// The thread of this program that does the work had no time left.
    Client,
    /// The CPUs of this machine had no time left, for any program.
    Machine,
    /// No resource: with few requests in flight, none had to wait for another.
    InFlight,
    /// The store, or the network.
    Store,
}

impl Bound {
    /// Of a rate that was measured with `cpu_usage`, where one request at a time took as long as `alone`
    /// and many at once as long as `together`.
    pub(super) fn of(cpu_usage: CpuUsage, alone: Spread, together: Spread) -> Self {
        if cpu_usage.busiest_thread >= BUSY {
            Self::Client
        } else if cpu_usage.machine_idle <= 1.0 - BUSY {
            Self::Machine
        } else if together.p50 * 2 < alone.p50 * 3 {
            Self::InFlight
        } else {
            Self::Store
        }
    }

    /// For programs.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Client => "client_cpu",
            Self::Machine => "machine_cpu",
            Self::InFlight => "in_flight",
            Self::Store => "store",
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "limited by the CPU of this client",
            Self::Machine => "limited by the CPUs of this machine",
            Self::InFlight => "limited by the number in flight",
            Self::Store => "limited by the store or the network",
        })
    }
}

/// What is not idle for more than this has no time left: the rest is lost in between.
const BUSY: f64 = 0.85;

/// How many locks a rate of renewals can keep: each lock is renewed every third of its TTL.
pub(super) fn locks_renewed(renewals_per_second: f64, ttl: Duration) -> f64 {
    renewals_per_second * ttl.as_secs_f64() / 3.0
}

/// A number to two digits, for more an estimate is not good for: `12,000`.
pub(super) fn about(number: f64) -> String {
    let digits = number.max(1.0).log10().floor() as i32 - 1;
    let unit = 10_f64.powi(digits.max(0));
    grouped((number / unit).round() * unit)
}

/// A number without a fraction, in groups of three digits.
pub(super) fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(micros: u64) -> Spread {
        let span = Duration::from_micros(micros);
        Spread::of(vec![span]).unwrap()
    }

    #[test]
    fn whoever_had_no_time_left_was_the_limit() {
        let cpu_usage = |busiest_thread, machine_idle| CpuUsage {
            busiest_thread,
            machine_idle,
        };
        let bound = |cpu_usage| Bound::of(cpu_usage, took(100), took(1_000));
        assert_eq!(bound(cpu_usage(0.97, 0.5)), Bound::Client);
        assert_eq!(bound(cpu_usage(0.97, 0.0)), Bound::Client);
        assert_eq!(bound(cpu_usage(0.6, 0.05)), Bound::Machine);
        assert_eq!(bound(cpu_usage(0.6, 0.5)), Bound::Store);
    }

    #[test]
    fn equal_times_show_no_limit() {
        let idle = CpuUsage {
            busiest_thread: 0.1,
            machine_idle: 0.9,
        };
        assert_eq!(Bound::of(idle, took(100), took(149)), Bound::InFlight);
        assert_eq!(Bound::of(idle, took(100), took(150)), Bound::Store);
    }

    #[test]
    fn lock_is_renewed_three_times_per_ttl() {
        let locks = locks_renewed(1_000.0, Duration::from_secs(30));
        assert!((locks - 10_000.0).abs() < 1e-6, "{locks}");
    }

    #[test]
    fn estimates_have_two_digits() {
        assert_eq!(about(0.0), "0");
        assert_eq!(about(7.4), "7");
        assert_eq!(about(96.7), "97");
        assert_eq!(about(123_456.0), "120,000");
        assert_eq!(about(9_960.0), "10,000");
        assert_eq!(grouped(1_234_567.8), "1,234,568");
        assert_eq!(grouped(123.0), "123");
    }
}
