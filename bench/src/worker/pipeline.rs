use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::bare::request;
use super::cycle::{Limit, Tally};
use super::task::Task;
use super::{say, say_json};
use crate::error::Fallible;
use crate::measure::bare_keys::BareKeys;
use crate::measure::record::Cycled;

/// A bare key over bare sockets: one thread, one connection for each server, constant requests, and one
/// write for all that are ready. It continues at a majority. No program can be faster, and no lock is so
/// simple.
pub(super) fn obey(task: &Task) -> Fallible {
    let mut proof = BareKeys::on(&task.ports)?;
    let mut nodes: Vec<Node> = task
        .ports
        .iter()
        .map(|port| Node::connect(*port))
        .collect::<Fallible<_>>()?;
    let keys: Vec<String> = task.keys().collect();
    let requests = |key: &String| {
        let set = request(&BareKeys::set_words(key));
        [set, request(&proof.delete_words(key))]
    };
    let words: Vec<[Vec<u8>; 2]> = keys[task.own()].iter().map(requests).collect();
    let first = &keys[0];
    for order in std::io::stdin().lines().map_while(Result::ok) {
        match (order.as_str(), Limit::parse(&order)) {
            (_, Some(limit)) => say_json(&Pipeline::new(&mut nodes, &words).run(limit)?)?,
            ("take", _) => {
                proof.set(first)?;
                say("taken")?;
            }
            ("second", _) => match proof.set(first) {
                Ok(()) => say("granted")?,
                // The key is there already.
                Err(_) => say("denied")?,
            },
            ("give", _) => {
                proof.delete(first)?;
                say("given")?;
            }
            _ => return Err(format!("the order {order:?}, now").into()),
        }
    }
    Ok(())
}

/// A connection, and the answers that it still expects, in order.
struct Node {
    stream: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
    expected: VecDeque<Expected>,
}

#[derive(Clone, Copy, Debug)]
struct Expected {
    handle: usize,
    /// Counted over all steps of the handle, to recognize a late answer.
    step: usize,
}

impl Node {
    fn connect(port: u16) -> Fallible<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            input: Vec::new(),
            output: Vec::new(),
            expected: VecDeque::new(),
        })
    }

    fn flush(&mut self) -> Fallible {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) => drop(self.output.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads the available bytes, and returns each whole line with its recipient.
    fn receive(&mut self, buffer: &mut [u8], got: &mut Vec<Expected>) -> Fallible {
        match self.stream.read(buffer) {
            Ok(0) => return Err("the server closed the connection".into()),
            Ok(count) => self.input.extend(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let mut from = 0;
        while let Some(length) = self.input[from..].iter().position(|byte| *byte == b'\n') {
            let line = &self.input[from..from + length];
            // `$-1` is a single line, too, and no answer here is a string.
            if !line.starts_with(b"+OK") && !line.starts_with(b":1") {
                return Err("a bare key was not free, or not ours".into());
            }
            got.push(self.expected.pop_front().ok_or("an answer to nothing")?);
            from += length + 1;
        }
        self.input.drain(..from);
        Ok(())
    }
}

/// What one handle waits for.
#[derive(Debug)]
struct HandleState {
    step: usize,
    done: usize,
    asked: Instant,
    acquired: Instant,
}

struct Pipeline<'a> {
    nodes: &'a mut [Node],
    words: &'a [[Vec<u8>; 2]],
    majority: usize,
    slots: Vec<HandleState>,
    tally: Tally,
}

impl<'a> Pipeline<'a> {
    fn new(nodes: &'a mut [Node], words: &'a [[Vec<u8>; 2]]) -> Self {
        let now = Instant::now();
        let slot = |_| HandleState {
            step: 0,
            done: 0,
            asked: now,
            acquired: now,
        };
        Self {
            majority: nodes.len() / 2 + 1,
            slots: (0..words.len()).map(slot).collect(),
            nodes,
            words,
            tally: Tally::default(),
        }
    }

    fn run(mut self, limit: Limit) -> Fallible<Cycled> {
        let began = Instant::now();
        for handle in 0..self.slots.len() {
            self.ask(handle);
        }
        let mut ended = 0;
        let (mut buffer, mut got) = (vec![0; 65_536], Vec::new());
        // Until all handles have ended, and the slower servers have sent their last answers.
        while ended < self.slots.len() || self.nodes.iter().any(|node| !node.expected.is_empty()) {
            for node in &mut *self.nodes {
                node.flush()?;
            }
            self.wait()?;
            for at in 0..self.nodes.len() {
                self.nodes[at].receive(&mut buffer, &mut got)?;
                for expected in got.drain(..) {
                    ended += usize::from(self.hears(expected, limit, began));
                }
            }
        }
        Ok(self.tally.finish(began.elapsed()))
    }

    fn wait(&self) -> Fallible {
        let mut descriptors: Vec<PollFd<'_>> = Vec::with_capacity(self.nodes.len());
        for node in &*self.nodes {
            let more = if node.output.is_empty() {
                PollFlags::empty()
            } else {
                PollFlags::POLLOUT
            };
            descriptors.push(PollFd::new(node.stream.as_fd(), PollFlags::POLLIN | more));
        }
        poll(&mut descriptors, PollTimeout::NONE)?;
        Ok(())
    }

    /// Sends what the handle's step is to all servers.
    fn ask(&mut self, handle: usize) {
        let slot = &mut self.slots[handle];
        slot.done = 0;
        let expected = Expected {
            handle,
            step: slot.step,
        };
        for node in &mut *self.nodes {
            node.output.extend(&self.words[handle][slot.step % 2]);
            node.expected.push_back(expected);
        }
    }

    /// Whether this answer was the handle's last.
    fn hears(&mut self, expected: Expected, limit: Limit, began: Instant) -> bool {
        let slot = &mut self.slots[expected.handle];
        if slot.step != expected.step {
            return false;
        }
        slot.done += 1;
        if slot.done < self.majority {
            return false;
        }
        let now = Instant::now();
        slot.step += 1;
        if slot.step % 2 == 1 {
            slot.acquired = now;
        } else {
            self.tally.add(slot.asked, slot.acquired, now);
            slot.asked = now;
            if limit.is_reached(began, slot.step / 2) {
                return true;
            }
        }
        self.ask(expected.handle);
        false
    }
}
