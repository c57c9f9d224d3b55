//! Records that outlive restarts: which members may accept a value, and which may report that there is none.

use leasehold::{
    Fence, Key, Opened, Reading, RecordKey, RecordWrite, Stamp, WriteOutcome, Written,
};

use super::fixture::Scene;
use super::*;
use crate::{Operation, Outcome, RecordAction, RecordAnswer};

const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// What one member stores: the greatest stamp, and the value with its stamp.
#[derive(Clone, Default)]
pub(super) struct Kept {
    seen: Option<Stamp>,
    value: Option<Stamp>,
}

impl Kept {
    pub(super) fn answer(&mut self, action: &RecordAction) -> RecordAnswer {
        let seen = self.seen.map(|stamp| stamp.fence);
        match action {
            RecordAction::Open(fence) if seen > Some(*fence) => {
                RecordAnswer::Opened(Opened::Superseded(self.seen.unwrap().fence))
            }
            RecordAction::Open(fence) => {
                let stamp = Stamp {
                    fence: *fence,
                    step: 0,
                };
                self.seen = self.seen.max(Some(stamp));
                RecordAnswer::Opened(Opened::Open(self.reading()))
            }
            RecordAction::Write(write) if self.seen > Some(write.stamp) => {
                RecordAnswer::Written(WriteOutcome::Superseded(self.seen.unwrap().fence))
            }
            RecordAction::Write(write) => {
                (self.seen, self.value) = (Some(write.stamp), Some(write.stamp));
                RecordAnswer::Written(WriteOutcome::Written)
            }
            RecordAction::Read => RecordAnswer::Read(self.reading()),
        }
    }

    fn reading(&self) -> Reading {
        let written = |stamp| Written::new(stamp, *b"value", RETENTION);
        Reading::settled(self.value.map(written))
    }
}

/// A quorum of durable members that lost nothing for longer than the retention.
fn durable(members: usize) -> Scene {
    let (mut world, _) = World::new(members);
    for server in &mut world.servers {
        server.durable = true;
        server.run += 1;
        server.member_record.as_mut().unwrap().durable = true;
    }
    world.now += 2 * RETENTION;
    Scene::of(world, members, true)
}

/// Makes a member lose its data, and waits until it has a vote again.
fn lose_data(scene: &mut Scene, member: usize) {
    scene.restart_empty(member);
    scene.records[member] = Kept::default();
    scene.pass(3 * WAIT);
}

fn run(scene: &mut Scene, action: RecordAction) -> Result<RecordAnswer, Error> {
    let mut record = RecordKey::new(Key::new("x").unwrap());
    record.lasting = Some(RETENTION);
    match scene.run(Operation::Record(record, action), 5 * SECOND) {
        Some(Outcome::Record(answer)) => Ok(answer),
        Some(Outcome::Failed(error)) => Err(error),
        other => panic!("{other:?}"),
    }
}

fn open(scene: &mut Scene, fence: u64) -> Result<Opened, Error> {
    let open = RecordAction::Open(Fence::new(fence).unwrap());
    match run(scene, open)? {
        RecordAnswer::Opened(opened) => Ok(opened),
        other => panic!("{other:?}"),
    }
}

fn write(scene: &mut Scene, fence: u64) -> Result<WriteOutcome, Error> {
    let stamp = Stamp {
        fence: Fence::new(fence).unwrap(),
        step: 1,
    };
    let write = RecordWrite::new(stamp, *b"value", RETENTION).unwrap();
    match run(scene, RecordAction::Write(write))? {
        RecordAnswer::Written(wrote) => Ok(wrote),
        other => panic!("{other:?}"),
    }
}

fn read(scene: &mut Scene) -> Result<Reading, Error> {
    match run(scene, RecordAction::Read)? {
        RecordAnswer::Read(reading) => Ok(reading),
        other => panic!("{other:?}"),
    }
}

#[test]
fn young_member_has_no_vote_on_records() {
    let mut scene = durable(3);
    scene.disconnect(2);
    assert!(matches!(open(&mut scene, 7), Ok(Opened::Open(_))));
    assert_eq!(write(&mut scene, 7).unwrap(), WriteOutcome::Written);
    scene.connect(2);
    lose_data(&mut scene, 1);
    // Two of three have nothing, and one of the two may have had a value.
    scene.disconnect(0);
    let error = read(&mut scene).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    assert!(error.to_string().contains("m1: "), "{error}");
    let error = open(&mut scene, 9).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    let error = write(&mut scene, 9).unwrap_err();
    assert_eq!(error.effect(), leasehold::Effect::Unknown);
    scene.connect(0);
    let found = read(&mut scene).unwrap();
    assert!(found.written.is_some() && !found.settled);
}

#[test]
fn member_has_a_vote_again_after_the_retention() {
    let mut scene = durable(3);
    lose_data(&mut scene, 1);
    scene.disconnect(2);
    let error = read(&mut scene).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    assert!(error.counts_again().is_some());
    scene.pass(RETENTION);
    assert_eq!(read(&mut scene).unwrap(), Reading::settled(None));
}

#[test]
fn lasting_record_needs_durable_members() {
    let (world, _) = World::new(3);
    let mut scene = Scene::of(world, 3, true);
    let error = open(&mut scene, 7).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(!scene.got.iter().flatten().any(|it| *it == "a record's"));
}

#[test]
fn member_without_a_vote_is_not_counted() {
    let mut scene = durable(3);
    scene.restart_empty(1);
    scene.disconnect(2);
    let error = read(&mut scene).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
}
