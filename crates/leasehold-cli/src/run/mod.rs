//! The verb `run`: wait for the lock, let a guardian run the command, free the lock.

pub(crate) mod guardian;
pub(crate) mod guardian_args;

mod descendants;
mod ending;
mod guardian_process;
mod job_control;
mod nesting;
mod orders;
mod protocol;
mod raw;
mod signals;
mod terminal;
mod waiting;
mod wrapper;

use std::time::Duration;

use leasehold::Mode;
use nix::sys::prctl;
use nix::sys::signal::Signal;

use crate::args::RunArgs;
use crate::config::{self, Environment};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::Output;
use crate::run::nesting::Nesting;
use crate::run::signals::Signals;
use crate::run::waiting::{Request, Wait};
use crate::run::wrapper::{End, Job, Wrapper};
use crate::status::runtime;
use crate::store_url::OpenStore;

/// Runs a command while holding a lock.
pub(crate) fn run(args: &RunArgs, output: &Output) -> Result<ExitCode, Failure> {
    let failed = |error| Failure::of("cannot start", &error);
    // Before the client starts its thread, which inherits what is blocked.
    let blocked = Signals::block().map_err(failed)?;
    // Should the guardian be killed, the processes below it come to this one.
    prctl::set_child_subreaper(true).map_err(|errno| failed(errno.into()))?;
    let grace = grace(args)?;
    let choice = config::choose(&args.store, &Environment::read())?;
    let store = OpenStore::open(&choice)?;
    refuse_long_ttl(args, store.ttl_max())?;
    store.speak_up(output);
    let nesting = Nesting::of_this_process();
    let client = store.client();
    let end = runtime()?.block_on(async {
        let signals = Signals::new(blocked).map_err(failed)?;
        let request = Request {
            client: &client,
            lock: lock(args, &client),
            args,
            mode: mode(args),
            nesting: &nesting,
            output,
        };
        let guard = match request.acquire(&signals).await? {
            Wait::Held(guard) => guard,
            Wait::Signalled(signal) => return Ok(End::With(ExitCode::of_signal(signal))),
        };
        let job = Job {
            args,
            grace,
            margin: margin(args),
            members: store.members(),
            descriptor: store.descriptor(guard.owner()),
            chain: nesting.chain_with(client.id()),
            outer: nesting.guardian_of_this_group(),
        };
        let wrapper = Wrapper::start(guard, job, &signals, output)
            .map_err(|error| Failure::of("cannot start the guardian", &error))?;
        wrapper.supervise().await
    })?;
    // Waits for releases under way.
    drop(client);
    match end {
        End::With(code) => Ok(code),
        End::Interrupted => {
            job_control::die_of_the_interrupt();
            Ok(ExitCode::of_signal(Signal::SIGINT as i32))
        }
    }
}

fn lock(args: &RunArgs, client: &leasehold::Client) -> leasehold::Lock {
    let mut lock = client.lock(&args.name).ttl(args.ttl).mode(mode(args));
    if let Some(wait) = args.wait {
        lock = lock.wait(wait);
    }
    if let Some(max_hold) = args.max_hold {
        lock = lock.max_hold(max_hold);
    }
    lock
}

/// The default TTL too may be longer than a set allows.
fn refuse_long_ttl(args: &RunArgs, ttl_max: Duration) -> Result<(), Failure> {
    if args.ttl <= ttl_max {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "TTL {:?} is longer than max_ttl {ttl_max:?}, the longest of this store: give a shorter \
         --ttl",
        args.ttl
    )))
}

fn mode(args: &RunArgs) -> Mode {
    if args.shared {
        Mode::Shared
    } else {
        Mode::Exclusive
    }
}

fn grace(args: &RunArgs) -> Result<Duration, Failure> {
    let span = shortest_hold(args);
    match args.grace {
        None => Ok((span / 6).min(Duration::from_secs(5))),
        // Renewal begins at ttl/3: a longer grace would leave it no time for a second try.
        Some(grace) if grace >= span / 3 => Err(Failure::usage(format!(
            "grace {grace:?} is too long: it must be less than a third of {span:?}, the {}",
            if span < args.ttl {
                "longest hold"
            } else {
                "TTL"
            },
        ))),
        Some(grace) => Ok(grace),
    }
}

/// By how much SIGKILL comes before the deadline: what it takes until the last process is gone.
fn margin(args: &RunArgs) -> Duration {
    (shortest_hold(args) / 30).min(Duration::from_secs(1))
}

/// How long the command has from the grant to the first deadline, roughly.
fn shortest_hold(args: &RunArgs) -> Duration {
    args.max_hold.map_or(args.ttl, |hold| hold.min(args.ttl))
}
