use leasehold::Error;
use leasehold::clock::WallTime;
use leasehold::member::{DataGeneration, Epoch, Incarnation, RunId, Sample};

use super::failure::{Rights, invalid_response, refused};
use super::member_record::EPOCH;
use super::names::MEMBER_RECORD;
use crate::resp::{CommandWriter, Value};

/// How many commands [`encode_sample`] writes.
pub const SAMPLE_COMMANDS: usize = 2;

/// Writes the commands after a batch that show which data answered it, and the server's clock.
///
/// The epoch comes last. If the server lost its data during the batch, it shows no epoch or another one. No
/// epoch ever returns.
pub fn encode_sample(out: &mut Vec<u8>) {
    let mut writer = CommandWriter::new(out);
    writer.command("TIME");
    writer.command("HGET").arg(MEMBER_RECORD).arg(EPOCH);
    writer.finish();
}

/// Reads the samples of one connection, all of one run of the server.
#[derive(Debug)]
pub struct Sampler {
    run: RunId,
    user: String,
    /// The last epoch, and the incarnation that it means. It rarely changes.
    last: (Vec<u8>, Incarnation),
}

impl Sampler {
    /// Returns a reader for a connection to this run of a server, as this user.
    pub fn new(run: RunId, user: impl Into<String>) -> Self {
        let last = (Vec::new(), Incarnation::new(&run, None));
        Self {
            run,
            user: user.into(),
            last,
        }
    }

    /// Returns the run of the server.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Reads the answers to the commands of [`encode_sample`].
    ///
    /// A epoch that the user may not read, or that makes no sense, counts as no epoch. It differs from that
    /// of the record, and the status of the member says why.
    ///
    /// # Errors
    ///
    /// The server does not report its time.
    pub fn read(&mut self, time: &Value, epoch: &Value) -> Result<Sample, Error> {
        if let Value::Error { code, message } = time {
            return Err(refused(code, message, &self.user, Rights("+time")));
        }
        let clock = read_time(time).ok_or_else(|| invalid_response("TIME"))?;
        let epoch = epoch.as_bytes().unwrap_or_default();
        if epoch != self.last.0 {
            let read = std::str::from_utf8(epoch).ok().and_then(read_epoch);
            self.last = (epoch.to_vec(), Incarnation::new(&self.run, read.as_ref()));
        }
        let incarnation = self.last.1.clone();
        Ok(Sample { clock, incarnation })
    }
}

/// Reads the answer to TIME: seconds and microseconds.
pub(crate) fn read_time(time: &Value) -> Option<WallTime> {
    let [seconds, micros] = time.as_array()? else {
        return None;
    };
    let number = |value: &Value| value.as_text()?.parse::<u64>().ok();
    let seconds = number(seconds)?.checked_mul(1_000_000)?;
    Some(WallTime::from_micros(seconds.checked_add(number(micros)?)?))
}

fn read_epoch(text: &str) -> Option<Epoch> {
    let (data_generation, generation) = text.split_once('.')?;
    let epoch = Epoch::of(
        DataGeneration::parse(data_generation)?,
        generation.parse().ok()?,
    );
    (epoch.as_str() == text).then_some(epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Bytes(text.as_bytes().to_vec())
    }

    #[test]
    fn sample_shows_clock_and_incarnation() {
        let run = RunId::new("run1");
        let mut sampler = Sampler::new(run.clone(), "ann");
        let time = Value::Array(vec![text("1763637400"), text("7")]);
        let data_generation = DataGeneration::parse("0123456789abcdef").unwrap();
        let epoch = Epoch::of(data_generation, 3);
        let marked = Incarnation::new(&run, Some(&epoch));
        for (shown, incarnation) in [
            (Value::Null, Incarnation::new(&run, None)),
            (text(epoch.as_str()), marked.clone()),
            (text(epoch.as_str()), marked),
            (text("7"), Incarnation::new(&run, None)),
            (Value::error("NOPERM", "no"), Incarnation::new(&run, None)),
        ] {
            let sample = sampler.read(&time, &shown).unwrap();
            assert_eq!(sample.incarnation, incarnation, "{shown:?}");
            assert_eq!(sample.clock.as_micros(), 1_763_637_400_000_007);
        }
        sampler.read(&Value::Null, &Value::Null).unwrap_err();
    }

    #[test]
    fn only_whole_marks_are_read() {
        let epoch = Epoch::of(DataGeneration::parse("0123456789abcdef").unwrap(), 7);
        assert_eq!(read_epoch(epoch.as_str()), Some(epoch));
        for wrong in ["", "7", "0123456789abcdef", "0123456789abcdef.+7", "x.7"] {
            assert_eq!(read_epoch(wrong), None, "{wrong}");
        }
    }
}
