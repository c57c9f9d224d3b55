//! The verb `run`: wait for the lock, let a guardian run the command, free the lock.

pub(crate) mod guardian;
pub(crate) mod guardian_args;
pub(crate) mod signals;

mod around;
mod descendants;
mod ending;
mod guardian_process;
mod hold;
mod job_control;
mod nesting;
pub(crate) mod once;
mod orders;
mod protocol;
mod raw;
mod terminal;
mod waiting;
mod wrapper;

use leasehold::{Client, LockSet};
use nix::sys::prctl;
use nix::sys::signal::Signal;

use crate::config::{self, Environment};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::Output;
use crate::run::hold::Hold;
use crate::run::nesting::Nesting;
use crate::run::signals::Signals;
use crate::run::waiting::{Request, Wait};
use crate::run::wrapper::{End, Job, Wrapper};
use crate::run_args::RunArgs;
use crate::status::runtime;
use crate::store_url::OpenStore;

/// Runs a command while holding a lock.
pub(crate) fn run(args: &RunArgs, output: &Output) -> Result<ExitCode, Failure> {
    let failed = |error| Failure::of("cannot start", &error);
    // Before the client starts its thread, which inherits what is blocked.
    let blocked = Signals::block().map_err(failed)?;
    // Should the guardian be killed, the processes below it come to this one.
    prctl::set_child_subreaper(true).map_err(|errno| failed(errno.into()))?;
    let grace = args.grace()?;
    let choice = config::choose(&args.store, &Environment::read())?;
    let store = OpenStore::open(&choice)?;
    args.refuse_ttl_over(store.ttl_max())?;
    store.speak_up(output);
    let nesting = Nesting::of_this_process();
    let client = store.client();
    let members = store.members();
    let end = runtime()?.block_on(async {
        let signals = Signals::new(blocked).map_err(failed)?;
        let request = Request {
            client: &client,
            locks: locks(args, &client),
            args,
            nesting: &nesting,
            output,
        };
        let lent = nesting.innermost(store.place(), &args.name);
        let hold = match lent.filter(|_| args.nested) {
            Some(lock) => request.enter(lock.clone()).await?,
            None => match request.acquire(&signals).await? {
                Wait::Held(guards) => Hold::Own(guards),
                Wait::Signalled(signal) => return Ok(End::With(ExitCode::of_signal(signal))),
            },
        };
        let job = Job {
            args,
            grace,
            margin: args.margin(),
            descriptors: hold
                .owners()
                .filter_map(|owner| store.descriptor(owner))
                .collect(),
            around: nesting.with(hold.taken(store.place())),
            members,
            outer: nesting.guardian_of_this_group(),
            output: None,
        };
        let wrapper = Wrapper::start(hold, job, &signals, output)
            .map_err(|error| Failure::of("cannot start the guardian", &error))?;
        wrapper.supervise().await
    })?;
    // Waits for releases under way.
    drop(client);
    match end {
        End::With(code) => Ok(code),
        End::Ended(status) => Ok(ExitCode::of_command(status)),
        End::Interrupted => {
            job_control::die_of_the_interrupt();
            Ok(ExitCode::of_signal(Signal::SIGINT as i32))
        }
    }
}

fn locks(args: &RunArgs, client: &Client) -> LockSet {
    let locks = client.lock_all(args.names());
    let mut locks = locks.ttl(args.ttl).mode(args.mode());
    if let Some(wait) = args.wait {
        locks = locks.wait(wait);
    }
    if let Some(max_hold) = args.max_hold {
        locks = locks.max_hold(max_hold);
    }
    if let Some(delay) = args.lock_delay {
        locks = locks.lock_delay(delay);
    }
    locks
}
