use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};

use crate::guardian::protocol::Order;

/// The guardian's end of the pipe with the orders of the wrapper.
#[derive(Debug)]
pub(crate) struct Orders {
    /// `None` once the wrapper is gone.
    pipe: Option<File>,
    /// The start of an order that was not read completely yet.
    unread: Vec<u8>,
}

impl Orders {
    pub(crate) fn new(pipe: File) -> Self {
        Self {
            pipe: Some(pipe),
            unread: Vec::new(),
        }
    }

    /// Whether the wrapper was alive at the last read.
    pub(crate) fn are_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// What to poll for the next order.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(File::as_fd)
    }

    /// Takes the available orders; blocks if there is none. The end of the wrapper counts as
    /// [`Order::Lost`]. So does an invalid order, because a wrapper that sends it may not keep the
    /// lock.
    pub(crate) fn take(&mut self) -> io::Result<Vec<Order>> {
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
            return Ok(vec![Order::Lost]);
        }
        self.unread.extend_from_slice(&chunk[..length]);
        let mut orders = Vec::new();
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            orders.push(line.trim_end().parse().unwrap_or(Order::Lost));
        }
        Ok(orders)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::pipe;
    use std::io::Write as _;

    #[test]
    fn orders_come_whole_and_in_order_and_the_end_is_a_loss() {
        let (reader, writer) = pipe().unwrap();
        let (mut orders, mut wrapper) = (Orders::new(reader.into()), File::from(writer));
        wrapper.write_all(b"signal 15\nsignal 1\nsig").unwrap();
        assert_eq!(
            orders.take().unwrap(),
            [Order::Signal(15), Order::Signal(1)]
        );
        wrapper.write_all(b"nal 2\nnonsense\n").unwrap();
        assert_eq!(orders.take().unwrap(), [Order::Signal(2), Order::Lost]);
        drop(wrapper);
        assert!(orders.are_open());
        assert_eq!(orders.take().unwrap(), [Order::Lost]);
        assert!(!orders.are_open() && orders.fd().is_none());
        assert_eq!(orders.take().unwrap(), []);
    }
}
