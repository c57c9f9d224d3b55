use leasehold::Mode;

use crate::sim::execution::Stand;

/// Whether leases, or guards, of these modes may stand together: any one alone, any number of shared
/// ones, and permits of one number, as many as that.
pub(super) fn may_stand_together(modes: &[Mode]) -> bool {
    let Some((first, others)) = modes.split_first().filter(|(_, others)| !others.is_empty()) else {
        return true;
    };
    let alike = others.iter().all(|other| other == first);
    match first {
        Mode::Exclusive => false,
        Mode::Shared => alike,
        Mode::Permit(permits) => alike && modes.len() <= permits.get() as usize,
    }
}

/// Whether permits of another number than `wanted` are held.
pub(super) fn permits_differ(wanted: Mode, stands: &[Stand]) -> bool {
    let held = stands.iter().filter_map(|stand| stand.mode.permits());
    wanted
        .permits()
        .is_some_and(|wanted| held.into_iter().any(|it| it != wanted))
}

#[cfg(test)]
mod tests {
    use leasehold::Permits;

    use super::*;

    #[test]
    fn only_readers_and_permits_of_one_number_stand_together() {
        let permit = |count| Mode::Permit(Permits::new(count).unwrap());
        let (alone, shared) = (Mode::Exclusive, Mode::Shared);
        for modes in [
            &[][..],
            &[alone],
            &[shared; 5],
            &[permit(2); 2],
            &[permit(1)],
        ] {
            assert!(may_stand_together(modes), "{modes:?}");
        }
        for modes in [
            &[alone; 2][..],
            &[alone, shared],
            &[shared, shared, alone],
            &[permit(2); 3],
            &[permit(2), permit(3)],
            &[permit(2), shared],
            &[alone, permit(2)],
        ] {
            assert!(!may_stand_together(modes), "{modes:?}");
        }
    }
}
