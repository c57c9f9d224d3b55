use crate::measure::subject::Subject;
use crate::report::charts::{Axes, Point, Series, lines};
use crate::report::figures::{distinct, number};
use crate::report::page::Page;
use crate::report::statistics::Spread;

use super::run::Run;
use super::subjects;
use super::table::runs_of;

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
pub(super) fn draw(nodes: usize, runs: &[&Run], page: &mut Page) -> Result<(), String> {
    for chart in CHARTS {
        let series: Vec<Series> = subjects::all(nodes)
            .map(|subject| series(&subject, runs, chart.value))
            .filter(|series| series.points.len() > 1)
            .collect();
        if series.is_empty() {
            continue;
        }
        let axes = Axes {
            x: "waiters",
            y: chart.axis,
        };
        let servers = if nodes == 1 {
            "one server".into()
        } else {
            format!("{nodes} servers")
        };
        let title = format!("{}, {servers}", chart.title);
        let svg = lines(&title, axes, &series)?;
        page.chart(&format!("{}-{nodes}", chart.name), &title, svg);
    }
    Ok(())
}

fn series(subject: &Subject, runs: &[&Run], value: fn(&Run) -> Option<f64>) -> Series {
    let own: Vec<&Run> = runs_of(runs, subject.name).collect();
    let points = distinct(own.iter().map(|run| run.waiters))
        .into_iter()
        .filter_map(|waiters| {
            let here = own.iter().filter(|run| run.waiters == waiters);
            let y = Spread::of(here.filter_map(|run| value(run)))?;
            Some(Point {
                x: number(waiters),
                y,
            })
        });
    Series {
        label: subject.name.into(),
        role: subject.role,
        points: points.collect(),
    }
}
