use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};

use crate::guardian::protocol::ControlMessage;

/// The guardian's end of the pipe for control messages from the wrapper.
#[derive(Debug)]
pub(crate) struct ControlPipe {
    /// `None` once the wrapper is gone.
    pipe: Option<File>,
    /// The start of a message that was not read completely yet.
    unread: Vec<u8>,
}

impl ControlPipe {
    pub(crate) fn new(pipe: File) -> Self {
        Self {
            pipe: Some(pipe),
            unread: Vec::new(),
        }
    }

    /// Whether the wrapper was alive at the last read.
    pub(crate) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// What to poll for the next message.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(File::as_fd)
    }

    /// Takes the available messages; blocks if there is none. The end of the wrapper counts as
    /// [`ControlMessage::Lost`]. So does an invalid message, because a wrapper that sends it may not keep the
    /// lock.
    pub(crate) fn take(&mut self) -> io::Result<Vec<ControlMessage>> {
        let Some(pipe) = &mut self.pipe else {
            return Ok(Vec::new());
        };
        let mut chunk = [0; 4096];
        let length = match pipe.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Vec::new()),
            outcome => outcome?,
        };
        if length == 0 {
            self.pipe = None;
            return Ok(vec![ControlMessage::Lost]);
        }
        self.unread.extend_from_slice(&chunk[..length]);
        let mut messages = Vec::new();
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            messages.push(line.trim_end().parse().unwrap_or(ControlMessage::Lost));
        }
        Ok(messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::pipe;
    use std::io::Write as _;

    #[test]
    fn messages_arrive_whole_and_eof_means_loss() {
        let (reader, writer) = pipe().unwrap();
        let (mut control, mut wrapper) = (ControlPipe::new(reader.into()), File::from(writer));
        wrapper.write_all(b"signal 15\nsignal 1\nsig").unwrap();
        assert_eq!(
            control.take().unwrap(),
            [ControlMessage::Signal(15), ControlMessage::Signal(1)]
        );
        wrapper.write_all(b"nal 2\nnonsense\n").unwrap();
        assert_eq!(
            control.take().unwrap(),
            [ControlMessage::Signal(2), ControlMessage::Lost]
        );
        drop(wrapper);
        assert!(control.is_open());
        assert_eq!(control.take().unwrap(), [ControlMessage::Lost]);
        assert!(!control.is_open() && control.fd().is_none());
        assert_eq!(control.take().unwrap(), []);
    }
}
