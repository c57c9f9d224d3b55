//! `leasehold bench`: measures a store through the library, as any program uses it.

pub(crate) mod args;
mod cpu_usage;
mod cycles;
mod estimate;
mod hand_over;
mod members;
mod plan;
mod renewals;
mod report;
mod statistics;
mod target;

use leasehold::{Client, Error, ErrorKind};

use crate::commands::bench::args::BenchArgs;
use crate::config::{self, Environment};
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::message::Message;
use crate::output::quorum_shortfall::QuorumShortfall;
use crate::output::{self, Output};
use crate::runtime::runtime;
use crate::runtime::signals::Signals;
use plan::{Part, Plan};
use report::Figures;
use target::BenchTarget;

/// How a measurement ended, unless it failed.
enum End {
    /// With this text to print.
    Measured(String),
    /// This signal asked the program to end.
    Signalled(i32),
}

/// Measures a store.
pub(crate) fn bench(args: &BenchArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose(&args.store, &Environment::read())?;
    // Before a client starts its thread, which inherits what is blocked.
    let blocked = Signals::block()?;
    let (target, longest) = BenchTarget::open(&choice, output)?;
    let plan = Plan {
        duration: args.duration,
        in_flight: args.in_flight,
        ttl: args.ttl(longest),
        prefix: format!("leasehold-bench/{}", target.clients[0].id()),
    };
    let keys = plan.keys()?;
    let store = target.clients[0].describe();
    let end = runtime()?.block_on(async {
        let signals = Signals::new(blocked)?;
        let stopped = || output.print_message(&Message::Warning(STOPPED));
        let end = tokio::select! {
            biased;
            signal = signals.ending_past_stops(output, stopped) => signal.map(End::Signalled),
            figures = measure(&target, &plan, output) => figures.map(|figures| {
                End::Measured(figures.render(args.json, &store, &plan))
            }),
        };
        output.clear_status();
        target.clean_up(keys, output).await;
        end
    })?;
    match end {
        End::Measured(text) => {
            output::print(&text).map_err(|error| Failure::of_stdout(&error))?;
            Ok(ExitCode::SUCCESS)
        }
        End::Signalled(signal) => Ok(ExitCode::of_signal(signal)),
    }
}

async fn measure(target: &BenchTarget, plan: &Plan, output: &Output) -> Result<Figures, Failure> {
    show(output, Part::RoundTrips);
    let reached = target.reach().await?;
    for client in &target.clients {
        warm_up(client, plan).await?;
    }
    let client = &target.clients[0];
    let members = members::round_trips(&target.members, reached, client, plan).await?;
    show(output, Part::OneAtATime);
    let one_at_a_time = cycles::one_at_a_time(client, plan).await?;
    show(output, Part::InFlight);
    let in_flight = cycles::in_flight(client, plan, one_at_a_time.cycle).await?;
    show(output, Part::HandOver);
    let hand_over = hand_over::hand_over(&target.clients, plan, one_at_a_time.acquire).await?;
    let renewals = if target.leases.are_renewed() {
        show(output, Part::Renewals);
        Some(target.leases.measure(plan).await?)
    } else {
        None
    };
    Ok(Figures {
        members,
        one_at_a_time,
        in_flight,
        hand_over,
        renewals,
    })
}

/// Acquires a lock once, which opens connections and loads scripts, or returns why that fails.
async fn warm_up(client: &Client, plan: &Plan) -> Result<(), Failure> {
    let lock = cycles::lock(client, &plan.one(), plan);
    match lock.try_acquire().await {
        Ok(Some(guard)) => cycles::release(guard).await,
        Ok(None) => Err(Error::new(ErrorKind::Busy, "another client holds the lock").into()),
        Err(error) if error.kind() == ErrorKind::NoQuorum => {
            let code = ExitCode::of_error(&error);
            let health = client.health().await.unwrap_or_default();
            match QuorumShortfall::of(&health)
                .and_then(|quorum_shortfall| quorum_shortfall.advice())
            {
                Some(advice) => Err(Failure::new(code, format!("{error}; {advice}"))),
                None => Err(error.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

fn show(output: &Output, part: Part) {
    if !output.has_terminal() {
        return;
    }
    let name = match part {
        Part::RoundTrips => "round trips",
        Part::OneAtATime => "one lock at a time",
        Part::InFlight => "many locks at once",
        Part::HandOver => "hand-over",
        Part::Renewals => "renewals",
    };
    let before = Part::ALL.into_iter().take_while(|other| *other != part);
    output.show_status(&Message::Measuring {
        part: name,
        number: before.count() + 1,
        of: Part::ALL.len(),
    });
}

/// Printed after a stop from the keyboard.
const STOPPED: &str = "the measurement was suspended for a while, which distorts its figures";
