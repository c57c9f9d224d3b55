//! The terminal: draws the view, reads keys, and asks the store.

use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::time::Duration;

use leasehold::Client;
use leasehold::clock::{BootInstant, Clock as _, SystemClock, within};
use leasehold::look::{BreakOptions, BreakOutcome};
use leasehold::store::background::thread;
use leasehold::store::exact_span;
use nix::sys::signal::{Signal, raise};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

use crate::commands::looking::top::args::TopArgs;
use crate::commands::looking::top::draw::{draw, locks_on};
use crate::commands::looking::top::snapshot::{Snapshot, read};
use crate::commands::looking::top::state::{Action, Break, Press, Top};
use crate::output::colour::is_in_colour;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::locks::holder_text;
use crate::process::user;
use crate::runtime::signals::Signals;

pub(super) struct Screen<'a> {
    pub(super) args: &'a TopArgs,
    pub(super) client: &'a Client,
    pub(super) signals: &'a Signals,
}

type Boxed<T> = Pin<Box<dyn Future<Output = T>>>;

/// What the program waits for from the store.
enum Reading {
    UnderWay {
        began: BootInstant,
        answer: Boxed<Result<Snapshot, String>>,
    },
    /// Until the next one.
    Pause(BootInstant),
}

impl Reading {
    /// Returns the answer, or `None` when the pause is over. Cancel safe.
    async fn next(&mut self) -> Option<Result<Snapshot, String>> {
        match self {
            Self::UnderWay { answer, .. } => Some(answer.await),
            Self::Pause(until) => {
                SystemClock.sleep_until(*until).await;
                None
            }
        }
    }
}

/// The terminal in its alternate screen. Dropping it restores the terminal; a panic does so, too.
struct Restored(DefaultTerminal);

impl Restored {
    fn enter() -> io::Result<Self> {
        ratatui::try_init().map(Self)
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        // A terminal that was hung up needs nothing.
        let _ = ratatui::try_restore();
    }
}

impl Screen<'_> {
    /// Shows the view until the user or a signal ends it.
    pub(super) async fn show(&self, mut top: Top) -> Result<ExitCode, Failure> {
        let failed = |error: io::Error| Failure::of("cannot use the terminal", &error);
        let mut terminal = Restored::enter().map_err(failed)?;
        let mut keys = keys().map_err(|error| Failure::of_start(&error))?;
        let mut reading = self.read(&top, &terminal);
        let mut breaking: Boxed<String> = Box::pin(pending());
        loop {
            let now = SystemClock.wall();
            let drawn = terminal
                .0
                .draw(|frame| draw(frame, &mut top, now, is_in_colour()));
            let height = locks_on(drawn.map_err(failed)?.area.height);
            let next_second = SystemClock.now() + Duration::from_secs(1);
            tokio::select! {
                biased;
                signal = self.signals.next() => {
                    let signal = signal?;
                    if signal.ends() {
                        return Ok(ExitCode::of_signal(signal.number()));
                    }
                    if signal.is_stop() {
                        drop(terminal);
                        raise(Signal::SIGSTOP).map_err(|errno| Failure::of("cannot stop", &errno))?;
                        terminal = Restored::enter().map_err(failed)?;
                    }
                    // Otherwise the terminal has another size, which the next picture has too.
                }
                press = keys.recv() => {
                    // Without a terminal there are no more keys.
                    let Some(press) = press else { return Ok(ExitCode::SUCCESS) };
                    match top.press(press, height) {
                        Action::Draw => {}
                        Action::Quit => return Ok(ExitCode::SUCCESS),
                        Action::Interrupt => return Ok(ExitCode::of_signal(Signal::SIGINT as i32)),
                        Action::Refresh => reading = self.read(&top, &terminal),
                        Action::Break(order) => breaking = self.break_lease(order),
                    }
                }
                told = &mut breaking => {
                    top.notice = Some(told);
                    breaking = Box::pin(pending());
                    reading = self.read(&top, &terminal);
                }
                answer = reading.next() => match answer {
                    Some(answer) => {
                        let pause = self.pause_after(&reading);
                        reading = Reading::Pause(SystemClock.now() + pause);
                        top.answered(answer, SystemClock.wall());
                    }
                    None => reading = self.read(&top, &terminal),
                },
                () = SystemClock.sleep_until(next_second) => {}
            }
        }
    }

    /// Begins to ask the store for what the screen shows.
    fn read(&self, top: &Top, terminal: &Restored) -> Reading {
        let lines = terminal.0.size().map_or(0, |size| size.height);
        let began = SystemClock.now();
        let (client, pattern) = (self.client.clone(), self.args.pattern.clone());
        let asking = read(client, pattern, self.args.limit, top.shown(locks_on(lines)));
        let answer = async move {
            match within(&SystemClock, began + ANSWER_MAX, asking).await {
                Some(answer) => answer.map_err(|error| error.to_string()),
                None => Err(format!("no answer within {}", exact_span(ANSWER_MAX))),
            }
        };
        Reading::UnderWay {
            began,
            answer: Box::pin(answer),
        }
    }

    /// The store works at most a fifth of the time for one view.
    fn pause_after(&self, reading: &Reading) -> Duration {
        let took = match reading {
            Reading::UnderWay { began, .. } => SystemClock.now().since(*began),
            Reading::Pause(_) => Duration::ZERO,
        };
        // A store that does not answer has no work.
        self.args.interval.max((took * 4).min(PAUSE_MAX))
    }

    /// Breaks a lease, and returns what to tell the user.
    fn break_lease(&self, order: Break) -> Boxed<String> {
        let client = self.client.clone();
        Box::pin(async move {
            let lock = order.lock.clone();
            let limit = SystemClock.now() + ANSWER_MAX;
            match within(&SystemClock, limit, carry_out(client, order)).await {
                Some(Ok(told)) => told,
                Some(Err(failure)) => failure.to_string(),
                None => {
                    let limit = exact_span(ANSWER_MAX);
                    format!("{lock}: no answer within {limit}; it may be broken")
                }
            }
        })
    }
}

async fn carry_out(client: Client, order: Break) -> Result<String, Failure> {
    let lock = &order.lock;
    let how = BreakOptions::at_its_end()
        .by_user(user::name())?
        .because(&order.reason)?;
    let outcome = client.break_lock(lock.as_str(), order.owner, how).await?;
    Ok(match outcome {
        BreakOutcome::Done(..) => format!("{lock}: broken"),
        BreakOutcome::Free => format!("{lock} is free; nothing is broken"),
        BreakOutcome::HeldBy(holders) => format!(
            "{lock} is held by {} now; nothing is broken",
            holder_text::phrases(&holders)
        ),
    })
}

/// How long the store may take for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(6);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// The keys that are pressed from now on. A thread reads them until the process ends.
fn keys() -> Result<mpsc::UnboundedReceiver<Press>, leasehold::Error> {
    let (sender, receiver) = mpsc::unbounded_channel();
    thread("leasehold-keys", move || {
        while let Ok(event) = event::read() {
            let Event::Key(key) = event else { continue };
            if let Some(press) = press(key)
                && sender.send(press).is_err()
            {
                return;
            }
        }
    })?;
    Ok(receiver)
}

fn press(key: KeyEvent) -> Option<Press> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(Press::Interrupt);
    }
    Some(match key.code {
        KeyCode::Char(c) => Press::Char(c),
        KeyCode::Enter => Press::Enter,
        KeyCode::Esc => Press::Escape,
        KeyCode::Backspace => Press::Backspace,
        KeyCode::Up => Press::Up,
        KeyCode::Down => Press::Down,
        KeyCode::PageUp => Press::PageUp,
        KeyCode::PageDown => Press::PageDown,
        KeyCode::Home => Press::Home,
        KeyCode::End => Press::End,
        _ => return None,
    })
}
