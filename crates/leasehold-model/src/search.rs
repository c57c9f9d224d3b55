//! A breadth-first search: the first way to break a property that it finds is a shortest one.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use crate::properties::{Property, broken};
use crate::state::ModelState;
use crate::steps::{AcquireReply, Model, Step};

/// When a search may stop before it has seen everything.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// States to visit.
    pub states: usize,
    /// Stop as soon as this property is broken.
    pub until: Option<Property>,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Report {
    /// States visited; states that differ only by the names of members count once.
    pub states: usize,
    /// The longest shortest way to any of them.
    pub depth: usize,
    /// Whether every state within the bounds was visited.
    pub complete: bool,
    /// Each broken property with a shortest trace to it.
    pub broken: BTreeMap<Property, Trace>,
    /// What was seen to happen.
    pub seen: BTreeSet<Event>,
}

/// An event that must happen somewhere in the design's runs, or the model shows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A guard became valid in one round.
    FastPath,
    /// A guard became valid after its fence was confirmed.
    Confirmed,
    /// The client ignored a grant, because its member was out.
    UntrustedGrant,
    /// A grant counted although its member had been out, because its wait was over.
    RejoinedGrant,
    /// A renewal succeeded.
    Renewed,
    /// A renewal succeeded that needed a member where the lease had been put back.
    RepairCounted,
    /// A lease was taken for an attempt that had ended.
    LateGrant,
}

/// Steps from a first state on.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The members' counters at the start.
    pub counters: Vec<u8>,
    /// What happened.
    pub steps: Vec<Step>,
}

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "c={:?}: ", self.counters)?;
        for (index, step) in self.steps.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{step}")?;
        }
        Ok(())
    }
}

/// Visits every state that the model can reach.
#[must_use]
pub fn search(model: &Model, limits: Limits) -> Report {
    match model.bounds.sets.members() {
        3 => Search::<3>::new(model).run(limits),
        _ => Search::<5>::new(model).run(limits),
    }
}

/// Every state visited, by its fingerprint alone; the states themselves are kept only while the
/// search passes through them.
struct Search<'a, const N: usize> {
    model: &'a Model,
    alike: bool,
    visited: HashSet<u64, BuildHasherDefault<AsIs>>,
    prints: Vec<u64>,
    parents: Vec<u32>,
    /// The last step of each trace: the state before it, and the property.
    ends: BTreeMap<Property, u32>,
    seen: BTreeSet<Event>,
}

const ROOT: u32 = u32::MAX;

impl<'a, const N: usize> Search<'a, N> {
    fn new(model: &'a Model) -> Self {
        Self {
            model,
            alike: model.attempts_are_alike(),
            visited: HashSet::default(),
            prints: Vec::new(),
            parents: Vec::new(),
            ends: BTreeMap::new(),
            seen: BTreeSet::new(),
        }
    }

    fn run(mut self, limits: Limits) -> Report {
        let mut front = Vec::new();
        for state in self.model.initial::<N>() {
            front.extend(self.visit(state, ROOT));
        }
        let mut depth = 0;
        let done = |search: &Self| limits.until.is_some_and(|p| search.ends.contains_key(&p));
        while !front.is_empty() && !done(&self) && self.prints.len() < limits.states {
            let mut next = Vec::new();
            for (state, index) in &front {
                self.expand(state, *index, &mut next);
                if done(&self) {
                    break;
                }
            }
            front = next;
            depth += usize::from(!front.is_empty());
        }
        Report {
            states: self.prints.len(),
            depth,
            complete: front.is_empty() && !done(&self),
            broken: self
                .ends
                .iter()
                .map(|(p, i)| (*p, self.trace(*p, *i)))
                .collect(),
            seen: self.seen,
        }
    }

    fn visit(&mut self, state: ModelState<N>, parent: u32) -> Option<(ModelState<N>, u32)> {
        let (state, print) = state.canonical(self.alike);
        if !self.visited.insert(print) {
            return None;
        }
        self.prints.push(print);
        self.parents.push(parent);
        Some((state, (self.prints.len() - 1) as u32))
    }

    fn expand(&mut self, state: &ModelState<N>, index: u32, next: &mut Vec<(ModelState<N>, u32)>) {
        let model = self.model;
        model.steps(state, |step, after| {
            if let Some(event) = event(state, step) {
                self.seen.insert(event);
            }
            let broken = broken(model, state, step, &after);
            if let Some(property) = broken {
                self.ends.entry(property).or_insert(index);
            }
            // After a break of exclusion, further steps show nothing new.
            if broken != Some(Property::Exclusion) {
                next.extend(self.visit(after, index));
            }
        });
    }

    /// The steps to `last` and the one from there that breaks the property, with the members named
    /// as in the first state.
    fn trace(&self, property: Property, last: u32) -> Trace {
        let mut path = Vec::new();
        let mut index = last;
        while index != ROOT {
            path.push(self.prints[index as usize]);
            index = self.parents[index as usize];
        }
        let first = path.pop();
        let starts = self.model.initial::<N>();
        let start = starts
            .into_iter()
            .find(|w| Some(w.canonical(self.alike).1) == first);
        let mut state = start.expect("a trace begins where a run may begin");
        let counters = state.members.iter().map(|member| member.counter).collect();
        let mut steps = Vec::new();
        while let Some(print) = path.pop() {
            let (step, after) =
                self.follow(&state, |_, after| after.canonical(self.alike).1 == print);
            steps.push(step);
            state = after;
        }
        let breaks =
            |step, after: &ModelState<N>| broken(self.model, &state, step, after) == Some(property);
        steps.push(self.follow(&state, breaks).0);
        Trace { counters, steps }
    }

    fn follow(
        &self,
        state: &ModelState<N>,
        wanted: impl Fn(Step, &ModelState<N>) -> bool,
    ) -> (Step, ModelState<N>) {
        let mut found = None;
        self.model.steps(state, |step, after| {
            if found.is_none() && wanted(step, &after) {
                found = Some((step, after));
            }
        });
        found.expect("a step that was taken once can be taken again")
    }
}

fn event<const N: usize>(before: &ModelState<N>, step: Step) -> Option<Event> {
    match step {
        Step::Win { rounds: 1, .. } => Some(Event::FastPath),
        Step::Win { .. } => Some(Event::Confirmed),
        Step::Count {
            reply: AcquireReply::Untrusted,
            ..
        } => Some(Event::UntrustedGrant),
        Step::Count {
            reply: AcquireReply::GrantOfBack,
            ..
        } => Some(Event::RejoinedGrant),
        Step::StayValid { repaired: true, .. } => Some(Event::RepairCounted),
        Step::StayValid { .. } => Some(Event::Renewed),
        Step::Take {
            granted: true,
            attempt,
            ..
        } => (!before.attempts[attempt].is_alive()).then_some(Event::LateGrant),
        _ => None,
    }
}

/// A fingerprint is a hash already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }

    fn write_u64(&mut self, print: u64) {
        self.0 = print;
    }
}
