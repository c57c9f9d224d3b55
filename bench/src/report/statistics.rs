/// The results of several rounds of one measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// `None` of nothing.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values = sorted(values);
        Some(Self {
            median: median(&values)?,
            least: *values.first()?,
            most: *values.last()?,
        })
    }
}

pub(crate) fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The middle one of sorted values, or the mean of the two in the middle.
fn median(sorted: &[f64]) -> Option<f64> {
    let upper = sorted.len() / 2;
    let below = sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(*below, *sorted.get(upper)?))
}

/// The least of the sorted values that is not exceeded by `percent` of them (nearest rank).
pub(crate) fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// Returns the p50 and the p99, or zeros if there are no values.
pub(crate) fn p50_and_p99(values: Vec<f64>) -> [f64; 2] {
    let values = sorted(values);
    [50, 99].map(|percent| percentile(&values, percent).unwrap_or_default())
}

/// Counts of one run are far below four thousand million.
pub(crate) fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_does_not_depend_on_the_order() {
        let spread = Spread::of([3.0, 1.0, 10.0]).unwrap();
        assert_eq!((spread.median, spread.least, spread.most), (3.0, 1.0, 10.0));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn an_even_number_of_values_has_its_median_between_two() {
        assert_eq!(median(&[1.0, 2.0, 4.0, 100.0]), Some(3.0));
        assert_eq!(median(&[7.0]), Some(7.0));
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let hundred = sorted((1..=100).rev().map(f64::from));
        assert_eq!(percentile(&hundred, 50), Some(50.0));
        assert_eq!(percentile(&hundred, 99), Some(99.0));
        assert_eq!(percentile(&[1.0, 2.0, 3.0], 99), Some(3.0));
        assert_eq!(percentile(&[], 50), None);
    }
}
