use super::*;

#[test]
fn a_lock_that_is_remembered_is_brought_up_to_date_however_many_there_are() {
    let (waits, _errands) = Waits::new(1, None, Ambient::default());
    let key = |number: usize| Key::new(format!("lock {number}")).unwrap();
    let mut busy = Busy::default();
    for number in 0..BUSY_MAX {
        waits.note_busy(&key(number), &busy);
    }
    busy.silent = true;
    waits.note_busy(&key(7), &busy);
    let state = waits.state();
    assert!(state.busy_lately[&key(7)].silent.is_some());
    assert!(state.busy_lately.len() <= BUSY_MAX);
}
