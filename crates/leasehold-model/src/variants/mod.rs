//! The design, and each way to break it.

use crate::bounds::{Bounds, Clocks};
use crate::properties::Property;
use crate::rules::DESIGN;
use crate::search::Event;
use crate::steps::Model;

mod broken;
mod design;

pub use broken::broken;
pub use design::{design, design_at_length, spare};

/// One search, and what it must find.
#[derive(Clone, Debug)]
pub struct Variant {
    /// What is different from the design.
    pub name: &'static str,
    /// The protocol and how much of it is tried.
    pub model: Model,
    /// The property whose shortest break the search looks for; none if all must hold.
    pub breaks: Option<Property>,
    /// The events that must happen if all properties must hold.
    pub shows: &'static [Event],
}

fn sound(name: &'static str, bounds: Bounds, shows: &'static [Event]) -> Variant {
    let rules = DESIGN;
    Variant {
        name,
        model: Model {
            rules,
            bounds,
            forgets: true,
        },
        breaks: None,
        shows,
    }
}

/// Without steps between the two of an acquire.
fn whole(bounds: Bounds) -> Bounds {
    Bounds {
        split: false,
        ..bounds
    }
}

fn spread(bounds: Bounds) -> Bounds {
    Bounds {
        spread: 1,
        ..bounds
    }
}

fn wrong(bounds: Bounds) -> Bounds {
    let clocks = Clocks::Wrong;
    Bounds { clocks, ..bounds }
}

/// By less than the waiting time, and by more than a guard has left of it.
fn skewed(bounds: Bounds) -> Bounds {
    let clocks = Clocks::Skewed(2);
    Bounds { clocks, ..bounds }
}

fn renewing(bounds: Bounds, renewals: u8) -> Bounds {
    Bounds { renewals, ..bounds }
}

fn restart(bounds: Bounds, restarts: u8) -> Bounds {
    Bounds { restarts, ..bounds }
}
