use crate::error::Fallible;
use crate::measure::subject::Subject;
use crate::report::charts::Series;
use crate::report::figures::{distinct, number};
use crate::report::page::Page;
use crate::report::statistics::Spread;
use crate::sections::turns;

use super::run::Run;
use super::subjects;

/// A figure over the number of waiters.
struct Chart {
    name: &'static str,
    title: &'static str,
    axis: &'static str,
    value: fn(&Run) -> Option<f64>,
}

const CHARTS: [Chart; 4] = [
    Chart {
        name: "p50",
        title: "Hand-over, p50",
        axis: "p50, µs",
        value: |run| run.figures.handover_p50,
    },
    Chart {
        name: "p99",
        title: "Hand-over, p99",
        axis: "p99, µs",
        value: |run| run.figures.handover_p99,
    },
    Chart {
        name: "fairness",
        title: "Grants of the luckiest waiter, as a multiple of a fair share",
        axis: "of a fair share",
        value: |run| {
            let fair = number(run.figures.sections) / number(run.waiters);
            Some(number(run.figures.grants_most) / fair)
        },
    },
    Chart {
        name: "commands",
        title: "Commands of all clients per section and server",
        axis: "commands",
        value: |run| Some(run.commands),
    },
];

/// Draws what was measured with more than one number of waiters.
pub(super) fn draw(nodes: usize, runs: &[Run], page: &mut Page) -> Fallible {
    for chart in CHARTS {
        let series: Vec<Series> = subjects::all(nodes)
            .map(|subject| series(&subject, nodes, runs, chart.value))
            .filter(|series| series.points.len() > 1)
            .collect();
        if series.is_empty() {
            continue;
        }
        let title = format!("{}, {}", chart.title, turns::servers(nodes));
        page.lines(
            &format!("{}-{nodes}", chart.name),
            &title,
            chart.axis,
            &series,
        )?;
    }
    Ok(())
}

fn series(subject: &Subject, nodes: usize, runs: &[Run], value: fn(&Run) -> Option<f64>) -> Series {
    let is_own = |run: &&Run| run.subject == subject.name && run.nodes == nodes;
    let own = || runs.iter().filter(is_own);
    let points = distinct(own().map(|run| run.waiters))
        .into_iter()
        .filter_map(|waiters| {
            let here = own().filter(|run| run.waiters == waiters);
            let y = Spread::of(here.filter_map(value))?;
            Some((number(waiters), y))
        });
    Series {
        label: subject.name.into(),
        role: subject.role,
        points: points.collect(),
    }
}
