use std::fmt;

use crate::checks::{self, Violation};
use crate::faults::Faults;
use crate::history::{Event, fingerprint};
use crate::mutation::Mutation;
#[cfg(test)]
use crate::plan::Plan;
#[cfg(test)]
use crate::rng::SimRng;
use crate::state::simulation::Simulation;
#[cfg(test)]
use crate::state::simulation::Stream;

/// The result of one run.
#[derive(Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The faults that the run had.
    pub faults: Faults,
    /// What must not have happened.
    pub violations: Vec<Violation>,
    /// How many locks were granted, to this library's clients and to foreign ones.
    pub grants: (u64, u64),
    /// How many requests the servers ran.
    pub requests: u64,
    /// How long locks were free while a waiter could have had them, in microseconds.
    pub idle: Vec<u64>,
    events: Vec<Event>,
}

impl Outcome {
    /// Returns a number that is the same for equal histories.
    pub fn fingerprint(&self) -> u64 {
        fingerprint(&self.events)
    }

    /// Returns the history, one line for each event.
    pub fn trace(&self) -> impl Iterator<Item = String> {
        self.events.iter().map(ToString::to_string)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {} ({})", self.seed, self.faults)?;
        for violation in &self.violations {
            write!(f, "\n  {violation}")?;
        }
        Ok(())
    }
}

/// Runs the simulation of `seed` with some of the allowed faults, and checks its history. If `has_notes` is
/// set, the trace has notes for readers.
pub fn run(seed: u64, allowed: Faults, has_notes: bool) -> Outcome {
    run_with(seed, allowed, Mutation::default(), has_notes)
}

/// Runs the simulation of `seed`. Holders also use the records of their locks.
pub fn run_records(seed: u64, allowed: Faults) -> Outcome {
    run_records_with(seed, allowed, Mutation::default(), true)
}

/// Runs a simulation with changed scripts. Notes are for readers only.
pub(crate) fn run_with(seed: u64, allowed: Faults, mutation: Mutation, has_notes: bool) -> Outcome {
    finish(Simulation::new(seed, allowed, mutation), has_notes)
}

pub(crate) fn run_records_with(
    seed: u64,
    allowed: Faults,
    mutation: Mutation,
    has_notes: bool,
) -> Outcome {
    let mut simulation = Simulation::new(seed, allowed, mutation);
    simulation.has_records = true;
    finish(simulation, has_notes)
}

/// Runs a simulation in which clients have lists with different servers under one id.
#[cfg(test)]
pub(crate) fn run_two_lists(seed: u64) -> Outcome {
    let plan = Plan::with_two_lists(&SimRng::new(seed, Stream::Plan.number()));
    finish(Simulation::of_plan(seed, plan, Mutation::default()), false)
}

fn finish(mut simulation: Simulation, has_notes: bool) -> Outcome {
    simulation.has_notes = has_notes;
    simulation.run();
    let seed = simulation.seed;
    let events = simulation.history;
    let plan = &simulation.plan;
    let (violations, idle) = checks::all(&events, plan);
    Outcome {
        seed,
        faults: plan.faults,
        violations,
        grants: (simulation.stats.grants, simulation.stats.foreign_grants),
        requests: simulation.stats.requests,
        idle,
        events,
    }
}
