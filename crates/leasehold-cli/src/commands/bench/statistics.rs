use std::time::Duration;

/// The statistics of a series of durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spread {
    pub(super) samples: usize,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
}

impl Spread {
    /// `None` without samples. Percentiles are measured values (nearest rank).
    pub(super) fn of(mut samples: Vec<Duration>) -> Option<Self> {
        samples.sort_unstable();
        let percentile = |percent: usize| {
            let rank = (samples.len() * percent).div_ceil(100).max(1);
            samples.get(rank - 1).copied()
        };
        Some(Self {
            samples: samples.len(),
            p50: percentile(50)?,
            p99: percentile(99)?,
        })
    }
}

/// How many a second `count` in `span` are.
pub(super) fn per_second(count: usize, span: Duration) -> f64 {
    let count = f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    count / span.as_secs_f64().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(spans: impl IntoIterator<Item = u64>) -> Vec<Duration> {
        spans.into_iter().map(Duration::from_millis).collect()
    }

    #[test]
    fn percentiles_are_measured_values_in_any_order() {
        let spread = Spread::of(millis((1..=200).rev())).unwrap();
        assert_eq!(spread.samples, 200);
        assert_eq!(spread.p50, Duration::from_millis(100));
        assert_eq!(spread.p99, Duration::from_millis(198));
        let few = Spread::of(millis([3, 1, 2])).unwrap();
        assert_eq!(few.p50, Duration::from_millis(2));
        assert_eq!(few.p99, Duration::from_millis(3));
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn a_rate_is_a_count_over_a_span() {
        assert_eq!(per_second(100, Duration::from_millis(500)), 200.0);
        assert!(per_second(0, Duration::ZERO) < 1.0);
    }
}
