use std::sync::Arc;
use std::time::Duration;

use super::table::Table;
use crate::env::clock::{BootInstant, WallTime};
use crate::env::{Env, SystemEntropy};
use crate::store::{AcquireError, Busy, Held, LockRequest, ReleaseReply};
use crate::types::{ErrorKind, Key, Mode, Owner, Permits};

const TTL: Duration = Duration::from_secs(30);

fn at(millis: u64) -> BootInstant {
    BootInstant::from_nanos(millis * 1_000_000)
}

fn request(mode: Mode) -> LockRequest {
    let client = Env::default().this_process(None);
    let owner = Owner::random(client.id, &SystemEntropy);
    let (key, proposal) = (Key::new("x").unwrap(), WallTime::from_micros(1));
    LockRequest::new(key, owner, TTL, proposal, Arc::new(client)).with_mode(mode)
}

fn waits(mode: Mode) -> LockRequest {
    request(mode).waiting(true)
}

fn permit(count: u32) -> Mode {
    Mode::Permit(Permits::new(count).unwrap())
}

fn is_granted(table: &mut Table, request: &LockRequest, now: BootInstant) -> bool {
    table.acquire(&Arc::new(request.clone()), now).is_ok()
}

fn busy(table: &mut Table, request: &LockRequest, now: BootInstant) -> Busy {
    match table.acquire(&Arc::new(request.clone()), now) {
        Err(AcquireError::Busy(busy)) => busy,
        other => panic!("{other:?}"),
    }
}

#[test]
fn waiters_are_served_in_order() {
    let mut table = Table::default();
    let [holder, first, second] = [(); 3].map(|()| waits(Mode::Exclusive));
    assert!(is_granted(&mut table, &holder, at(0)));
    assert_eq!(busy(&mut table, &first, at(1)).position, Some(1));
    assert_eq!(busy(&mut table, &second, at(2)).position, Some(2));
    assert_eq!(table.release(&holder, at(3)), ReleaseReply::Released);
    busy(&mut table, &second, at(4));
    busy(&mut table, &request(Mode::Exclusive), at(4));
    assert!(is_granted(&mut table, &first, at(5)));
    table.release(&first, at(6));
    assert!(is_granted(&mut table, &second, at(7)));
}

#[test]
fn waiter_that_does_not_come_loses_its_place() {
    let mut table = Table::default();
    let [holder, dead, next] = [(); 3].map(|()| waits(Mode::Exclusive));
    is_granted(&mut table, &holder, at(0));
    busy(&mut table, &dead, at(1));
    busy(&mut table, &next, at(2));
    table.release(&holder, at(1_000));
    busy(&mut table, &next, at(1_999));
    let (_, until) = table.outlook(&next, at(1_999)).expect("a waiter");
    assert_eq!(until, Some(at(2_000)));
    assert!(is_granted(&mut table, &next, at(2_000)));
}

#[test]
fn waiting_writer_keeps_later_readers_out() {
    let mut table = Table::default();
    let [reader, late] = [(); 2].map(|()| waits(Mode::Shared));
    let writer = waits(Mode::Exclusive);
    assert!(is_granted(&mut table, &reader, at(0)));
    busy(&mut table, &writer, at(1));
    busy(&mut table, &late, at(2));
    assert!(is_granted(
        &mut table,
        &request(Mode::Shared).barging(true),
        at(3)
    ));
    table.release(&writer, at(4));
    assert!(is_granted(&mut table, &late, at(5)));
}

#[test]
fn downgrade_lets_waiting_readers_in() {
    let mut table = Table::default();
    let (writer, reader) = (waits(Mode::Exclusive), waits(Mode::Shared));
    let Ok(grant) = table.acquire(&Arc::new(writer.clone()), at(0)) else {
        panic!("a free lock")
    };
    busy(&mut table, &reader, at(1));
    let held = Held {
        request: Arc::new(writer.with_mode(Mode::Shared)),
        fence: grant.fence,
    };
    table.renew(&held, at(2));
    assert!(is_granted(&mut table, &reader, at(3)));
}

#[test]
fn permits_are_given_to_as_many_waiters() {
    let mut table = Table::default();
    let [one, two, three, four] = [(); 4].map(|()| waits(permit(2)));
    assert!(is_granted(&mut table, &one, at(0)) && is_granted(&mut table, &two, at(0)));
    busy(&mut table, &three, at(1));
    busy(&mut table, &four, at(2));
    table.release(&one, at(3));
    busy(&mut table, &four, at(4));
    assert!(is_granted(&mut table, &three, at(5)));
    let Err(AcquireError::Failed(error)) = table.acquire(&Arc::new(waits(permit(3))), at(6)) else {
        panic!("another number of permits")
    };
    assert_eq!(error.kind(), ErrorKind::PermitsDiffer);
}

#[test]
fn waiter_for_another_number_is_in_nobodys_way() {
    let mut table = Table::default();
    let holder = waits(Mode::Exclusive);
    let (differs, next) = (waits(permit(3)), waits(permit(2)));
    is_granted(&mut table, &holder, at(0));
    busy(&mut table, &differs, at(1));
    busy(&mut table, &next, at(2));
    table.release(&holder, at(3));
    assert!(is_granted(
        &mut table,
        &request(permit(2)).barging(true),
        at(4)
    ));
    assert!(is_granted(&mut table, &next, at(5)));
    assert!(table.acquire(&Arc::new(differs.clone()), at(6)).is_err());
    assert!(table.waiters(&holder.key, at(6)).is_empty());
}
