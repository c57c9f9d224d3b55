use leasehold_file::DirectoryFacts;

use super::{all_green, finding, refused, remedy};
use crate::commands::doctor::files::judge;
use crate::commands::doctor::finding::Finding;
use crate::commands::doctor::finding::Verdict::{Green, Red, Yellow};

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
    };
    spoil(&mut facts);
    judge(&facts)
}

#[test]
fn a_folder_that_is_well_is_green() {
    all_green(&judged(|_| {}));
    all_green(&judged(|it| it.outlives_a_boot = false));
    let missing = judged(|it| {
        it.exists = false;
        it.owner = None;
        it.flock = None;
    });
    all_green(&missing);
    assert!(
        finding(&missing, "folder", Green)
            .found
            .contains("creates it")
    );
}

#[test]
fn what_stands_in_the_way_is_red() {
    finding(&judged(|it| it.usable = Err(refused())), "folder", Red);
    finding(&judged(|it| it.flock = Some(Err(refused()))), "flock", Red);
}

#[test]
fn folder_with_files_removable_by_all_is_red() {
    for (mode, is_ill) in [
        (0o777, true),
        (0o1777, false),
        (0o770, false),
        (0o755, false),
    ] {
        let findings = judged(|it| it.owner = Some((7, mode)));
        if is_ill {
            assert!(remedy(&findings, "owner", Red).contains("chmod o-w /srv/locks"));
        } else {
            finding(&findings, "owner", Green);
        }
    }
}

#[test]
fn a_network_is_red_unless_it_was_accepted() {
    let network = |it: &mut DirectoryFacts| {
        it.is_local = false;
        it.file_system = "NFS".into();
    };
    finding(&judged(network), "file_system", Yellow);
    let refused = judged(|it| {
        network(it);
        it.usable = Err(refused());
    });
    assert!(finding(&refused, "file_system", Red).found.contains("NFS"));
}

#[test]
fn little_room_is_yellow_and_none_red() {
    let with = |room| judged(|it| it.room = Ok(room));
    finding(&with((1 << 20, 1 << 20)), "room", Yellow);
    finding(&with((1 << 40, 999)), "room", Yellow);
    finding(&with((0, 1 << 20)), "room", Red);
    finding(&with((1 << 40, 0)), "room", Red);
    finding(&with((1 << 40, u64::MAX)), "room", Green);
    finding(&judged(|it| it.room = Err(refused())), "room", Yellow);
    finding(&judged(|it| it.locks = Err(refused())), "locks", Yellow);
}
