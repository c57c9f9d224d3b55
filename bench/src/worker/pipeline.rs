use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::bare::request;
use super::cycle::{Limit, Tally};
use super::say;
use super::task::Task;

/// What every lock library's release amounts to.
pub(super) const FREE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                               return redis.call('DEL', KEYS[1]) end return 0";

/// A bare key over bare sockets: one thread, one connection for each server, constant requests, and one
/// write for all that are ready. It continues at a majority. No program can be faster, and no lock is so
/// simple.
pub(super) fn obey(task: &Task) -> Result<(), String> {
    let mut nodes = task
        .ports
        .iter()
        .map(|port| Node::connect(*port))
        .collect::<Result<Vec<_>, _>>()?;
    let mut sha = String::new();
    for node in &mut nodes {
        let loaded = node.call(&request(&["SCRIPT", "LOAD", FREE]), 2)?;
        sha = loaded.lines().nth(1).unwrap_or_default().into();
    }
    let words: Vec<[Vec<u8>; 2]> = task
        .keys()
        .enumerate()
        .map(|(n, key)| words(n, &key, &sha))
        .collect();
    for order in std::io::stdin().lines().map_while(Result::ok) {
        let mut ask = |handle: usize, step: usize| -> Result<usize, String> {
            let mut done = 0;
            for node in &mut nodes {
                done += usize::from(is_done(&node.call(&words[handle][step], 1)?));
            }
            Ok(done)
        };
        let answer = match (order.as_str(), Limit::parse(&order)) {
            (_, Some(limit)) => Pipeline::new(&mut nodes, &words[task.own()]).run(limit)?,
            ("take", _) if ask(0, 0)? == task.ports.len() => "taken".into(),
            ("second", _) => match ask(task.waiters + 1, 0)? {
                0 => "denied".into(),
                _ => "granted".into(),
            },
            ("give", _) if ask(0, 1)? == task.ports.len() => "given".into(),
            _ => return Err(format!("the order {order:?}, now")),
        };
        say(&answer)?;
    }
    Ok(())
}

/// How a handle takes its key, and how it frees it.
fn words(handle: usize, key: &str, sha: &str) -> [Vec<u8>; 2] {
    let token = format!("token-{handle:026}");
    [
        request(&["SET", key, &token, "NX", "PX", "30000"]),
        request(&["EVALSHA", sha, "1", key, &token]),
    ]
}

fn is_done(answer: &str) -> bool {
    matches!(answer.trim_end(), "+OK" | ":1")
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
    fn connect(port: u16) -> Result<Self, String> {
        let stream = TcpStream::connect(("127.0.0.1", port)).map_err(text)?;
        stream.set_nodelay(true).map_err(text)?;
        Ok(Self {
            stream,
            input: Vec::new(),
            output: Vec::new(),
            expected: VecDeque::new(),
        })
    }

    /// One request, and the `lines` of its answer, or one line that says otherwise.
    fn call(&mut self, request: &[u8], lines: usize) -> Result<String, String> {
        self.stream.set_nonblocking(false).map_err(text)?;
        self.stream.write_all(request).map_err(text)?;
        let mut answer = Vec::new();
        let is_whole = |answer: &[u8]| {
            let seen = answer.iter().filter(|byte| **byte == b'\n').count();
            seen >= lines
                || (seen == 1 && answer.starts_with(b"-"))
                || (seen == 1 && answer.starts_with(b"$-1"))
        };
        while !is_whole(&answer) {
            let mut bytes = [0; 256];
            match self.stream.read(&mut bytes).map_err(text)? {
                0 => return Err("the server closed the connection".into()),
                count => answer.extend(&bytes[..count]),
            }
        }
        String::from_utf8(answer).map_err(|error| error.to_string())
    }

    fn flush(&mut self) -> Result<(), String> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) => drop(self.output.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(text(error)),
            }
        }
        Ok(())
    }

    /// Reads the available bytes, and returns each whole line with its recipient.
    fn receive(
        &mut self,
        buffer: &mut [u8],
        got: &mut Vec<(Expected, bool)>,
    ) -> Result<(), String> {
        match self.stream.read(buffer) {
            Ok(0) => return Err("the server closed the connection".into()),
            Ok(count) => self.input.extend(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(text(error)),
        }
        let mut from = 0;
        while let Some(length) = self.input[from..].iter().position(|byte| *byte == b'\n') {
            let line = &self.input[from..from + length];
            let expected = self.expected.pop_front().ok_or("an answer to nothing")?;
            // `$-1` is a single line, too, and no answer here is a string.
            got.push((
                expected,
                line.starts_with(b"+OK") || line.starts_with(b":1"),
            ));
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
    cycles: usize,
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
            cycles: 0,
        };
        Self {
            majority: nodes.len() / 2 + 1,
            slots: (0..words.len()).map(slot).collect(),
            nodes,
            words,
            tally: Tally::default(),
        }
    }

    fn run(mut self, limit: Limit) -> Result<String, String> {
        let began = Instant::now();
        for node in &mut *self.nodes {
            node.stream.set_nonblocking(true).map_err(text)?;
        }
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
                for (expected, done) in got.drain(..) {
                    if self.hears(expected, done, limit, began)? {
                        ended += 1;
                    }
                }
            }
        }
        Ok(self.tally.text(began.elapsed()))
    }

    fn wait(&self) -> Result<(), String> {
        let mut descriptors: Vec<PollFd<'_>> = Vec::with_capacity(self.nodes.len());
        for node in &*self.nodes {
            let more = if node.output.is_empty() {
                PollFlags::empty()
            } else {
                PollFlags::POLLOUT
            };
            descriptors.push(PollFd::new(node.stream.as_fd(), PollFlags::POLLIN | more));
        }
        poll(&mut descriptors, PollTimeout::NONE).map_err(|error| error.to_string())?;
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
    fn hears(
        &mut self,
        expected: Expected,
        done: bool,
        limit: Limit,
        began: Instant,
    ) -> Result<bool, String> {
        let slot = &mut self.slots[expected.handle];
        if !done {
            return Err("a bare key was not free, or not ours".into());
        }
        if slot.step != expected.step {
            return Ok(false);
        }
        slot.done += 1;
        if slot.done < self.majority {
            return Ok(false);
        }
        let now = Instant::now();
        slot.step += 1;
        if slot.step % 2 == 1 {
            slot.acquired = now;
        } else {
            self.tally.add(slot.asked, slot.acquired, now);
            slot.cycles += 1;
            slot.asked = now;
            if limit.is_reached(began, slot.cycles) {
                return Ok(true);
            }
        }
        self.ask(expected.handle);
        Ok(false)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn text(error: std::io::Error) -> String {
    error.to_string()
}
