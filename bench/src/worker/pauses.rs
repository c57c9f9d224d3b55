use std::time::Duration;

use leasehold::env::Env;

/// The pauses of a waiter. With equal pauses, waiters would fall into step with each other. So there are ten
/// different pauses in random order, again and again, and all waiters pause for the same time in total.
#[derive(Debug)]
pub(super) struct Pauses {
    span: Duration,
    chance: Env,
    left: Vec<Duration>,
}

impl Pauses {
    /// About `span`, half of it more or less.
    pub(super) fn about(span: Duration) -> Self {
        let (chance, left) = (Env::default(), Vec::new());
        Self { span, chance, left }
    }

    pub(super) fn next(&mut self) -> Duration {
        if self.left.is_empty() {
            let steps = (0..10).map(|step| self.span * (55 + 10 * step) / 100);
            self.left.extend(steps);
        }
        let count = u64::try_from(self.left.len()).unwrap_or(u64::MAX);
        let drawn = self.chance.entropy.next_u64() % count;
        self.left
            .swap_remove(usize::try_from(drawn).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_of_them_are_as_long_as_any_other_ten_and_all_differ() {
        let span = Duration::from_millis(5);
        let mut pauses = Pauses::about(span);
        for _ in 0..3 {
            let mut ten: Vec<Duration> = (0..10).map(|_| pauses.next()).collect();
            assert_eq!(ten.iter().sum::<Duration>(), span * 10);
            ten.sort_unstable();
            ten.dedup();
            assert_eq!(ten.len(), 10);
            assert!(ten[0] > span / 2 && ten[9] < span * 3 / 2);
        }
    }
}
