//! Records: what is asked and changed, each in one script.

use std::time::Duration;

use leasehold::{
    Error, ErrorKind, Fence, Opened, Reading, RecordWrite, Recorded, Stamp, Written, Wrote,
};

use crate::attempt::{garbled, milliseconds};
use crate::connection::{Answer, Command, Link, Refusal, Replies, Script};
use crate::sample;
use crate::scripts::{RECORD_OPEN, RECORD_READ, RECORD_WRITE, RIGHTS};
use crate::wire::Records;

pub(crate) async fn open(
    link: &Link,
    records: &Records<'_>,
    fence: Fence,
) -> Result<Recorded<Opened>, Error> {
    let call = RECORD_OPEN.call(&keys(records), &[fence.to_string()]);
    run(link, &RECORD_OPEN, call, |answer| match answer {
        Answer::Text(greatest) => Ok(Opened::Superseded(read_stamp(greatest)?.fence)),
        answer => Ok(Opened::Open(read_reading(answer)?)),
    })
    .await
}

pub(crate) async fn write(
    link: &Link,
    records: &Records<'_>,
    write: &RecordWrite,
) -> Result<Recorded<Wrote>, Error> {
    let Stamp { fence, step } = write.stamp;
    let (fence, step) = (fence.to_string(), step.to_string());
    let retention = milliseconds(write.retention).to_string();
    let arguments = [
        fence.as_bytes(),
        step.as_bytes(),
        &*write.bytes,
        retention.as_bytes(),
    ];
    let call = RECORD_WRITE.call(&keys(records), &arguments);
    run(link, &RECORD_WRITE, call, |answer| match answer {
        Answer::Integer(1) => Ok(Wrote::Written),
        Answer::Text(greatest) => Ok(Wrote::Superseded(read_stamp(greatest)?.fence)),
        _ => Err(garbled("the writing of a record")),
    })
    .await
}

pub(crate) async fn read(link: &Link, records: &Records<'_>) -> Result<Recorded<Reading>, Error> {
    let call = RECORD_READ.call(&[records.record().concat()], &[] as &[&str]);
    run(link, &RECORD_READ, call, read_reading).await
}

fn keys(records: &Records<'_>) -> [String; 2] {
    [records.record().concat(), records.stamp().concat()]
}

/// Runs the script once; with its answer, what the server shows of itself.
async fn run<T>(
    link: &Link,
    script: &'static Script,
    call: Command,
    read: impl FnOnce(&Answer) -> Result<T, Error>,
) -> Result<Recorded<T>, Error> {
    let Replies { answers, shown } = link.run_shown(script, vec![call]).await?;
    let answer = match &*answers {
        [Answer::Refused(refusal)] => return Err(refused(refusal, link)),
        [answer] => read(answer)?,
        _ => return Err(garbled("a record")),
    };
    let sample = sample::read(link, &shown)?;
    Ok(Recorded {
        answer,
        sample: Some(sample),
    })
}

pub(crate) fn read_reading(answer: &Answer) -> Result<Reading, Error> {
    let written = match answer.as_list() {
        Some([]) => None,
        Some([Answer::Text(stamp), Answer::Text(bytes), left]) => {
            let left = left.as_integer().and_then(|left| u64::try_from(left).ok());
            let left = left.ok_or_else(|| damaged("has no end"))?;
            let stamp = read_stamp(stamp)?;
            Some(Written::new(
                stamp,
                bytes.as_slice(),
                Duration::from_millis(left),
            ))
        }
        _ => return Err(garbled("a record")),
    };
    Ok(Reading::settled(written))
}

fn read_stamp(text: &[u8]) -> Result<Stamp, Error> {
    let parsed = std::str::from_utf8(text).ok().and_then(|text| {
        let (fence, step) = text.split_once('.')?;
        Some(Stamp {
            fence: Fence::new(fence.parse().ok()?)?,
            step: step.parse().ok()?,
        })
    });
    parsed.ok_or_else(|| damaged("has a stamp that is none"))
}

fn damaged(flaw: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!("the record {flaw}: DEL is the remedy"),
    )
}

/// A script may have done a part of its work when it ran into an error.
fn refused(refusal: &Refusal, link: &Link) -> Error {
    if refusal.is_wrong_type() {
        return damaged("is of another type");
    }
    refusal.to_error(link.user(), RIGHTS).with_unknown_effect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_whole_or_is_damage() {
        let stamp = Stamp {
            fence: Fence::MAX,
            step: 7,
        };
        assert_eq!(read_stamp(stamp.to_string().as_bytes()).unwrap(), stamp);
        for wrong in [
            "", "7", "7.", ".7", "0.1", "7.x", "7.-1", "7.1.1", "\u{fffd}",
        ] {
            let error = read_stamp(wrong.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{wrong}");
        }
    }

    #[test]
    fn the_scripts_remember_for_as_long_as_is_promised() {
        let lua = include_str!("lua/record.lua");
        assert!(lua.contains("local MEMORY_MS = 7 * 24 * 60 * 60 * 1000\n"));
        assert_eq!(milliseconds(leasehold::RECORD_MEMORY), 604_800_000);
    }
}
