//! What is kept of a command that has ended: pure, and readable by every later version.

use leasehold::once::Once;

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) exit_code: u8,
    pub(super) stdout: KeptOutput,
    pub(super) stderr: KeptOutput,
}

/// What a command wrote to one of its streams, from the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeptOutput {
    pub(super) bytes: Vec<u8>,
    /// There was more than [`KeptOutput::MAX`].
    pub(super) is_cut: bool,
}

/// What is stored is no command's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoResult;

impl KeptOutput {
    /// How much is kept of each stream.
    pub(super) const MAX: usize = (Once::RESULT_MAX - HEADER) / 2;

    pub(super) fn add(&mut self, bytes: &[u8]) {
        let room = Self::MAX - self.bytes.len();
        self.bytes.extend(&bytes[..bytes.len().min(room)]);
        self.is_cut |= bytes.len() > room;
    }
}

impl Stored {
    pub(super) fn encode(&self) -> Vec<u8> {
        let cut = u8::from(self.stdout.is_cut) | u8::from(self.stderr.is_cut) << 1;
        let length = u32::try_from(self.stdout.bytes.len()).unwrap_or(u32::MAX);
        let mut bytes = vec![VERSION, self.exit_code, cut];
        bytes.extend(length.to_le_bytes());
        bytes.extend(&self.stdout.bytes);
        bytes.extend(&self.stderr.bytes);
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, NoResult> {
        let Some(([VERSION, exit_code, cut, length @ ..], rest)) =
            bytes.split_first_chunk::<HEADER>()
        else {
            return Err(NoResult);
        };
        let length = u32::from_le_bytes(*length) as usize;
        let (stdout, stderr) = rest.split_at_checked(length).ok_or(NoResult)?;
        let kept = |bytes: &[u8], bit: u8| KeptOutput {
            bytes: bytes.to_vec(),
            is_cut: cut & bit != 0,
        };
        if *cut > 3 {
            return Err(NoResult);
        }
        Ok(Self {
            exit_code: *exit_code,
            stdout: kept(stdout, 1),
            stderr: kept(stderr, 2),
        })
    }
}

const VERSION: u8 = 1;
const HEADER: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str, is_cut: bool) -> KeptOutput {
        KeptOutput {
            bytes: text.into(),
            is_cut,
        }
    }

    #[test]
    fn what_was_encoded_is_decoded() {
        for (stdout, stderr) in [
            (kept("", false), kept("", false)),
            (kept("out\0\n", true), kept("", false)),
            (kept("", false), kept("err", true)),
            (kept("out", false), kept("err", false)),
        ] {
            let stored = Stored {
                exit_code: 137,
                stdout,
                stderr,
            };
            assert_eq!(Stored::decode(&stored.encode()), Ok(stored));
        }
    }

    #[test]
    fn what_is_no_result_is_refused() {
        let stored = Stored {
            exit_code: 0,
            stdout: kept("out", false),
            stderr: kept("", false),
        };
        let bytes = stored.encode();
        for length in 0..bytes.len() {
            assert_eq!(Stored::decode(&bytes[..length]), Err(NoResult), "{length}");
        }
        for (place, value) in [(0, 2), (2, 4), (6, 1)] {
            let mut wrong = bytes.clone();
            wrong[place] = value;
            assert_eq!(Stored::decode(&wrong), Err(NoResult), "{place}");
        }
    }

    #[test]
    fn longest_output_fits_and_more_is_cut() {
        let mut kept = KeptOutput::default();
        let chunk = vec![b'x'; 100_000];
        while !kept.is_cut {
            kept.add(&chunk);
        }
        assert_eq!(kept.bytes.len(), KeptOutput::MAX);
        kept.add(b"x");
        assert_eq!(kept.bytes.len(), KeptOutput::MAX);
        let stored = Stored {
            exit_code: 0,
            stdout: kept.clone(),
            stderr: kept,
        };
        assert!(stored.encode().len() <= Once::RESULT_MAX);
        let mut exact = KeptOutput::default();
        exact.add(&vec![b'x'; KeptOutput::MAX]);
        assert!(!exact.is_cut);
    }
}
