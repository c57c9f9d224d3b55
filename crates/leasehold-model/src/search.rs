//! A breadth-first search: the first way to break a property that it finds is a shortest one.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use crate::properties::{Property, broken};
use crate::state::World;
use crate::steps::{Model, Step, Word};

/// When a search may stop before it has seen everything.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Worlds to visit.
    pub worlds: usize,
    /// Stop as soon as this property is broken.
    pub until: Option<Property>,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Report {
    /// Worlds visited; worlds that differ only by the names of members count once.
    pub worlds: usize,
    /// The longest shortest way to any of them.
    pub depth: usize,
    /// Whether every world within the bounds was visited.
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
    /// A guard became valid after its fence was sealed.
    Sealed,
    /// The client ignored a grant, because its member was out.
    UntrustedGrant,
    /// A grant counted although its member had been out, because its wait was over.
    RejoinedGrant,
    /// A renewal succeeded.
    Renewed,
    /// A renewal succeeded that needed a member where the lease had been put back.
    HealCounted,
    /// A lease was taken for an attempt that had ended.
    LateGrant,
}

/// Steps from a first world on.
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

/// Visits every world that the model can reach.
#[must_use]
pub fn search(model: &Model, limits: Limits) -> Report {
    match model.bounds.sets.members() {
        3 => Search::<3>::new(model).run(limits),
        _ => Search::<5>::new(model).run(limits),
    }
}

/// Every world visited, by its fingerprint alone; the worlds themselves are kept only while the
/// search passes through them.
struct Search<'a, const N: usize> {
    model: &'a Model,
    alike: bool,
    visited: HashSet<u64, BuildHasherDefault<AsIs>>,
    prints: Vec<u64>,
    parents: Vec<u32>,
    /// The last step of each trace: the world before it, and the property.
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
        for world in self.model.initial::<N>() {
            front.extend(self.visit(world, ROOT));
        }
        let mut depth = 0;
        let done = |search: &Self| limits.until.is_some_and(|p| search.ends.contains_key(&p));
        while !front.is_empty() && !done(&self) && self.prints.len() < limits.worlds {
            let mut next = Vec::new();
            for (world, index) in &front {
                self.expand(world, *index, &mut next);
                if done(&self) {
                    break;
                }
            }
            front = next;
            depth += usize::from(!front.is_empty());
        }
        Report {
            worlds: self.prints.len(),
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

    fn visit(&mut self, world: World<N>, parent: u32) -> Option<(World<N>, u32)> {
        let (world, print) = world.canonical(self.alike);
        if !self.visited.insert(print) {
            return None;
        }
        self.prints.push(print);
        self.parents.push(parent);
        Some((world, (self.prints.len() - 1) as u32))
    }

    fn expand(&mut self, world: &World<N>, index: u32, next: &mut Vec<(World<N>, u32)>) {
        let model = self.model;
        model.steps(world, |step, after| {
            if let Some(event) = event(world, step) {
                self.seen.insert(event);
            }
            let broken = broken(model, world, step, &after);
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
    /// as in the first world.
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
        let mut world = start.expect("a trace begins where a run may begin");
        let counters = world.members.iter().map(|member| member.counter).collect();
        let mut steps = Vec::new();
        while let Some(print) = path.pop() {
            let (step, after) =
                self.follow(&world, |_, after| after.canonical(self.alike).1 == print);
            steps.push(step);
            world = after;
        }
        let breaks =
            |step, after: &World<N>| broken(self.model, &world, step, after) == Some(property);
        steps.push(self.follow(&world, breaks).0);
        Trace { counters, steps }
    }

    fn follow(
        &self,
        world: &World<N>,
        wanted: impl Fn(Step, &World<N>) -> bool,
    ) -> (Step, World<N>) {
        let mut found = None;
        self.model.steps(world, |step, after| {
            if found.is_none() && wanted(step, &after) {
                found = Some((step, after));
            }
        });
        found.expect("a step that was taken once can be taken again")
    }
}

fn event<const N: usize>(before: &World<N>, step: Step) -> Option<Event> {
    match step {
        Step::Win { rounds: 1, .. } => Some(Event::FastPath),
        Step::Win { .. } => Some(Event::Sealed),
        Step::Count {
            word: Word::Untrusted,
            ..
        } => Some(Event::UntrustedGrant),
        Step::Count {
            word: Word::GrantOfBack,
            ..
        } => Some(Event::RejoinedGrant),
        Step::Confirm { healed: true, .. } => Some(Event::HealCounted),
        Step::Confirm { .. } => Some(Event::Renewed),
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
