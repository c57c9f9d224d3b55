//! Records: values that belong to a lock and are written by fence.

use std::time::Duration;

use leasehold::store::{Opened, Reading, Version, WriteOutcome, Written};
use leasehold::{Error, ErrorKind, Key};
use leasehold_quorum::{RecordAction, RecordAnswer, Reply};

use super::command::Codec;
use super::expiry::milliseconds;
use super::failure::{invalid_response, is_wrong_type};
use super::names::Names;
use crate::resp::{CommandWriter, Value};
use crate::scripts::{RECORD_OPEN, RECORD_READ, RECORD_WRITE, Script};

pub(super) fn script(action: &RecordAction) -> &'static Script {
    match action {
        RecordAction::Open(_) => &RECORD_OPEN,
        RecordAction::Write(_) => &RECORD_WRITE,
        RecordAction::Read => &RECORD_READ,
    }
}

pub(super) fn write(codec: &Codec, key: &Key, action: &RecordAction, out: &mut CommandWriter<'_>) {
    let names = Names::new(&codec.prefix, key);
    let kinds: &[&str] = match action {
        RecordAction::Read => &["record"],
        RecordAction::Open(_) | RecordAction::Write(_) => &["record", "version"],
    };
    out.command("EVALSHA").arg(script(action).sha1());
    out.number(kinds.len() as u64);
    for kind in kinds {
        names.write(out, kind);
    }
    match action {
        RecordAction::Read => {}
        RecordAction::Open(fence) => {
            out.number(fence.get());
        }
        RecordAction::Write(write) => {
            let Version { fence, step } = write.version;
            out.number(fence.get()).number(step.into());
            out.arg(&write.bytes).number(milliseconds(write.retention));
        }
    }
}

pub(super) fn read(codec: &Codec, action: &RecordAction, answer: &Value) -> Result<Reply, Error> {
    if let Value::Error { code, message } = answer
        && is_wrong_type(code, message)
    {
        return Err(damaged("is of another type").with_unknown_effect());
    }
    let answer = codec.accepted(answer)?;
    let answer = match (action, answer) {
        (RecordAction::Read, answer) => RecordAnswer::Read(read_value(answer)?),
        (RecordAction::Open(_), Value::Array(_)) => {
            RecordAnswer::Opened(Opened::Open(read_value(answer)?))
        }
        (RecordAction::Open(_), greatest) => {
            RecordAnswer::Opened(Opened::Superseded(read_version(greatest)?.fence))
        }
        (RecordAction::Write(_), Value::Integer(1)) => RecordAnswer::Written(WriteOutcome::Written),
        (RecordAction::Write(_), greatest) => {
            RecordAnswer::Written(WriteOutcome::Superseded(read_version(greatest)?.fence))
        }
    };
    Ok(Reply::Record(answer))
}

fn read_value(answer: &Value) -> Result<Reading, Error> {
    let written = match answer.as_array() {
        Some([]) => None,
        Some([version, value, left]) => {
            let version = read_version(version)?;
            let bytes = value.as_bytes().ok_or_else(unreadable)?;
            let left = left.as_integer().ok_or_else(unreadable)?;
            let left = u64::try_from(left).map_err(|_| damaged("has no end"))?;
            Some(Written::new(version, bytes, Duration::from_millis(left)))
        }
        _ => return Err(unreadable()),
    };
    Ok(Reading::settled(written))
}

fn read_version(answer: &Value) -> Result<Version, Error> {
    let text = answer.as_bytes().ok_or_else(unreadable)?;
    let parsed = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| damaged("has an invalid version").with_unknown_effect())
}

fn damaged(flaw: &str) -> Error {
    let text = format!("the record {flaw}: delete it (leasehold:record:… and leasehold:version:…)");
    Error::new(ErrorKind::Corrupt, text)
}

fn unreadable() -> Error {
    invalid_response("what was asked of a record")
}

#[cfg(test)]
mod tests {
    use leasehold::Fence;

    use super::*;

    fn text(text: &str) -> Value {
        Value::Bytes(text.as_bytes().to_vec())
    }

    #[test]
    fn version_is_read_whole_or_corrupt() {
        let version = Version {
            fence: Fence::MAX,
            step: 7,
        };
        assert_eq!(read_version(&text(&version.to_string())).unwrap(), version);
        let error = read_version(&text("0.1")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        let error = read_version(&Value::Integer(7)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidResponse);
    }

    #[test]
    fn value_without_an_end_is_corrupt() {
        let parts = |left| Value::Array(vec![text("7.1"), text("value"), left]);
        let reading = read_value(&parts(Value::Integer(5))).unwrap();
        let written = reading.written.unwrap();
        assert_eq!(written.remaining, Duration::from_millis(5));
        let error = read_value(&parts(Value::Integer(-1))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        for wrong in [
            Value::Null,
            parts(Value::Null),
            Value::Array(vec![text("7.1")]),
        ] {
            let error = read_value(&wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidResponse);
        }
    }

    #[test]
    fn scripts_remember_versions_as_long_as_promised() {
        let memory = milliseconds(leasehold::store::RECORD_MEMORY);
        let line = format!("local MEMORY_MS = {memory}\n");
        assert!(RECORD_OPEN.text.contains(&line));
    }
}
