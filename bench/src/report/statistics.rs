use serde::Serialize;

/// The results of several rounds of one measure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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

/// The runs of one subject under one condition, and all runs that they are compared with.
#[derive(Clone, Debug)]
pub(crate) struct Sample<'a, R> {
    pub(crate) own: Vec<&'a R>,
    all: &'a [R],
}

impl<'a, R> Sample<'a, R> {
    /// The runs for which `is_own` holds; `None` if there are none.
    pub(crate) fn of(all: &'a [R], is_own: impl Fn(&R) -> bool) -> Option<Self> {
        let own: Vec<&R> = all.iter().filter(|run| is_own(run)).collect();
        (!own.is_empty()).then_some(Self { own, all })
    }

    /// One of the runs, for what all of them have in common.
    pub(crate) fn first(&self) -> &'a R {
        self.own[0]
    }

    pub(crate) fn over<V: Into<Option<f64>>>(&self, value: impl Fn(&R) -> V) -> Option<Spread> {
        Spread::of(self.own.iter().filter_map(|run| value(run).into()))
    }

    /// The value of each run, as a multiple of that of its reference: the other run for which
    /// `is_reference` holds.
    pub(crate) fn ratio<V: Into<Option<f64>>>(
        &self,
        is_reference: impl Fn(&R, &R) -> bool,
        value: impl Fn(&R) -> V,
    ) -> Option<Spread> {
        Spread::of(self.own.iter().filter_map(|run| {
            let reference = self.all.iter().find(|other| is_reference(run, other))?;
            Some(value(run).into()? / value(reference).into()?)
        }))
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
    let (below, above) = (
        sorted.get(sorted.len().checked_sub(1)? / 2)?,
        sorted.get(upper)?,
    );
    Some(f64::midpoint(*below, *above))
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

pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    let count = u32::try_from(values.len())
        .ok()
        .filter(|count| *count > 0)?;
    Some(values.iter().sum::<f64>() / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_does_not_depend_on_the_order() {
        let spread = Spread::of([3.0, 1.0, 10.0]).unwrap();
        let expected = Spread {
            median: 3.0,
            least: 1.0,
            most: 10.0,
        };
        assert_eq!(spread, expected);
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
        assert_eq!(percentile(&hundred, 100), Some(100.0));
        let three = [1.0, 2.0, 3.0];
        assert_eq!(percentile(&three, 50), Some(2.0));
        assert_eq!(percentile(&three, 99), Some(3.0));
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn a_mean_of_nothing_is_none() {
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(mean(&[]), None);
    }
}
