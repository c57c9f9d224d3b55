use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// A process that takes orders on its standard input, one per line, and answers on its standard output.
/// Dropping this handle ends it.
#[derive(Debug)]
pub(crate) struct LineProcess {
    name: String,
    process: Child,
    orders: ChildStdin,
    answers: Receiver<String>,
}

/// Maximum time to wait for an answer: enough for a lease that was left behind to expire.
const ANSWER_MAX: Duration = Duration::from_secs(60);

impl LineProcess {
    /// `name`: for messages.
    pub(crate) fn start(name: &str, command: &mut Command) -> Result<Self, String> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command
            .spawn()
            .map_err(|error| format!("{name}: {error}"))?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (orders, output) = pipes.ok_or("a process without pipes")?;
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The receiver is gone once the handle is.
                let _ = sender.send(line);
            }
        });
        Ok(Self {
            name: name.to_owned(),
            process,
            orders,
            answers,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Gives an order and returns the line that answers it.
    pub(crate) fn ask(&mut self, order: &str) -> Result<String, String> {
        writeln!(self.orders, "{order}")
            .map_err(|error| format!("{} takes no orders: {error}", self.name))?;
        self.answer(order)
    }

    /// The next line: the answer to `order`, or what it says by itself.
    pub(crate) fn answer(&mut self, order: &str) -> Result<String, String> {
        self.answers
            .recv_timeout(ANSWER_MAX)
            .map_err(|error| format!("{} did not answer to {order}: {error}", self.name))
    }
}

impl Drop for LineProcess {
    fn drop(&mut self) {
        // An error means that it has ended already; then waiting only collects it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
