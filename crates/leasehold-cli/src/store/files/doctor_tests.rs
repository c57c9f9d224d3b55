use leasehold_file::DirectoryFacts;

use super::judge;
use crate::output::expect_finding::{all_green, expect, expect_none, green, red, refused, yellow};
use crate::output::finding::Finding;
use crate::output::finding::Verdict::{Green, Red, Yellow};

fn judged(spoil: impl FnOnce(&mut DirectoryFacts)) -> Vec<Finding> {
    let mut facts = DirectoryFacts {
        path: "/srv/locks".into(),
        exists: true,
        usable: Ok(()),
        file_system: "ext4".into(),
        is_local: true,
        outlives_a_boot: true,
        owner: Some((7, 0o700)),
        flock: Some(Ok(())),
        room: Ok((1 << 40, 1 << 20)),
        locks: Ok((3, 1)),
        damaged: Vec::new(),
    };
    spoil(&mut facts);
    judge(&facts)
}

#[test]
fn a_folder_that_is_well_is_green() {
    all_green(&judged(|_| {}));
    all_green(&judged(|it| it.outlives_a_boot = false));
    let missing = judged(|it| (it.exists, it.owner, it.flock) = (false, None, None));
    all_green(&missing);
    green(&missing, "folder", "creates it");
}

#[test]
fn what_stands_in_the_way_is_red() {
    let without_rights =
        judged(|it| (it.usable, it.flock) = (Err(refused()), Some(Err(refused()))));
    red(&without_rights, "folder", "give this user");
    expect_none(&without_rights, "flock");
    red(&judged(|it| it.flock = Some(Err(refused()))), "flock", "");
}

#[test]
fn folder_with_files_removable_by_all_is_red() {
    let with = |mode| judged(|it| it.owner = Some((7, mode)));
    red(&with(0o777), "owner", "chmod o-w /srv/locks");
    for mode in [0o1777, 0o770, 0o755] {
        green(&with(mode), "owner", "");
    }
}

#[test]
fn a_network_is_red_unless_it_was_accepted() {
    let network = |usable| {
        judged(|it| (it.is_local, it.file_system, it.usable) = (false, "NFS".into(), usable))
    };
    yellow(&network(Ok(())), "file_system", "NFS");
    red(&network(Err(refused())), "file_system", "NFS");
}

#[test]
fn little_room_is_yellow_and_none_red() {
    for (room, verdict) in [
        ((1 << 20, 1 << 20), Yellow),
        ((1 << 40, 999), Yellow),
        ((0, 1 << 20), Red),
        ((1 << 40, 0), Red),
        ((1 << 40, u64::MAX), Green),
    ] {
        expect(&judged(|it| it.room = Ok(room)), "room", verdict, "");
    }
    yellow(&judged(|it| it.room = Err(refused())), "room", "");
    yellow(&judged(|it| it.locks = Err(refused())), "locks", "");
}

#[test]
fn damaged_lock_files_are_yellow_and_named() {
    let damaged = judged(|it| it.damaged = vec!["a.lock".into(), "b.lock".into()]);
    yellow(&damaged, "locks", "damaged: a.lock, b.lock");
}
