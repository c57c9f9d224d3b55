use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::{Area, FONT, INK, PALE, short, svg, text, write};
use crate::error::Fallible;
use crate::measure::subject::Role;
use crate::report::statistics::Spread;

/// How a figure changes with the number of waiters.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) label: String,
    pub(crate) role: Role,
    /// The number of waiters, and the figure.
    pub(crate) points: Vec<(f64, Spread)>,
}

const HEIGHT: u32 = 400;
/// The lowest place of a label: above the numbers of the horizontal axis.
const LABEL_MOST: i32 = 340;
/// For the labels of the lines, at their right ends.
const MARGIN: u32 = 190;

/// The colours of peers, which distinguish them.
const PEERS: [RGBColor; 6] = [
    RGBColor(0xc9, 0x6a, 0x1b),
    RGBColor(0x8a, 0x5a, 0xa8),
    RGBColor(0x3d, 0x8f, 0x5f),
    RGBColor(0xb8, 0x3b, 0x5e),
    RGBColor(0x7a, 0x6a, 0x3a),
    RGBColor(0x2f, 0x8f, 0xa3),
];

const BOUNDS: [RGBColor; 2] = [RGBColor(0x4f, 0x58, 0x62), RGBColor(0x93, 0x9d, 0xa8)];
const OURS: [RGBColor; 2] = [RGBColor(0x1f, 0x5f, 0xbf), RGBColor(0x5a, 0xa0, 0xf2)];

/// A line for each series, with its name at its right end. Both axes are logarithmic: ratios can be read as
/// distances. `axis` names the vertical one.
pub(crate) fn lines(title: &str, axis: &str, series: &[Series]) -> Fallible<String> {
    svg(title, HEIGHT, |root| {
        for ((x, y), label, colour) in draw(root, axis, series)? {
            write(root, &label, (x + 10, y), text(13, colour, HPos::Left))?;
        }
        Ok(())
    })
}

/// Draws axes and lines, and returns the place for the name of each line.
fn draw(root: &Area<'_>, axis: &str, series: &[Series]) -> Fallible<Vec<Label>> {
    let points = || series.iter().flat_map(|series| &series.points);
    let (x_least, x_most) = bounds(points().map(|point| point.0));
    let ends = |(_, y): &(f64, Spread)| [y.least, y.most];
    let (y_least, y_most) = bounds(points().flat_map(ends).filter(|y| *y > 0.0));
    let (y_least, y_most) = (y_least / 1.3, y_most * 1.3);
    let mut xs: Vec<f64> = points().map(|point| point.0).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let x = (x_least / 1.15..x_most * 1.15).log_scale();
    let y = (y_least..y_most).log_scale();
    let mut chart = ChartBuilder::on(root)
        .margin_top(48)
        .margin_right(MARGIN)
        .margin_bottom(8)
        .margin_left(8)
        .x_label_area_size(44)
        .y_label_area_size(62)
        .build_cartesian_2d(
            x.with_key_points(xs),
            y.with_key_points(ticks(y_least, y_most)),
        )?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(PALE)
        .axis_style(INK.mix(0.6))
        .x_desc("waiters")
        .y_desc(axis)
        .x_label_formatter(&|x| short(*x))
        .y_label_formatter(&|y| short(*y))
        .label_style((FONT, 12).into_font().color(&INK))
        .axis_desc_style((FONT, 13).into_font().color(&INK))
        .draw()?;
    let mut labels = Vec::new();
    for (series, colour) in series.iter().zip(colours(series)) {
        let width = if series.role == Role::Ours { 3 } else { 2 };
        let path = series.points.iter().map(|(x, y)| (*x, y.median));
        let path: Vec<(f64, f64)> = path.collect();
        let line = LineSeries::new(path.clone(), colour.stroke_width(width)).point_size(3);
        chart.draw_series(line)?;
        let spreads = series.points.iter().map(|(x, y)| {
            let ends = vec![(*x, y.least.max(y_least)), (*x, y.most)];
            PathElement::new(ends, colour.mix(0.5).stroke_width(1))
        });
        chart.draw_series(spreads)?;
        if let Some(last) = path.last() {
            labels.push((chart.backend_coord(last), series.label.clone(), colour));
        }
    }
    Ok(apart(labels))
}

type Label = ((i32, i32), String, RGBColor);

/// Moves labels until none overlaps another one or the text below the axis.
fn apart(mut labels: Vec<Label>) -> Vec<Label> {
    const STEP: i32 = 16;
    labels.sort_by_key(|((_, y), _, _)| *y);
    let mut least = i32::MIN;
    for ((_, y), _, _) in &mut labels {
        *y = (*y).max(least);
        least = *y + STEP;
    }
    let mut most = LABEL_MOST;
    for ((_, y), _, _) in labels.iter_mut().rev() {
        *y = (*y).min(most);
        most = *y - STEP;
    }
    labels
}

fn colours(series: &[Series]) -> Vec<RGBColor> {
    let mut peers = PEERS.iter().cycle();
    let mut bounds = BOUNDS.iter().cycle();
    let mut ours = OURS.iter().cycle();
    let colour = |series: &Series| match series.role {
        Role::Ours => ours.next(),
        Role::Bound => bounds.next(),
        Role::Peer => peers.next(),
    };
    series.iter().filter_map(colour).copied().collect()
}

fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (least, most) = values.fold((f64::INFINITY, 0.0), |(least, most), value: f64| {
        (value.min(least), value.max(most))
    });
    if least <= most {
        (least, most)
    } else {
        (1.0, 10.0)
    }
}

/// 1, 2 and 5 times the powers of ten.
fn ticks(least: f64, most: f64) -> Vec<f64> {
    let powers = (-4..8).map(|power| 10_f64.powi(power));
    let ticks = powers.flat_map(|power| [power, 2.0 * power, 5.0 * power]);
    ticks.filter(|tick| (least..=most).contains(tick)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_its_name_and_no_two_names_lie_on_each_other() {
        let spread = Spread::of([90.0, 100.0, 110.0]).unwrap();
        let series = |label: &str| Series {
            label: label.into(),
            role: Role::Peer,
            points: [4.0, 16.0].map(|x| (x, spread)).into(),
        };
        let svg = lines("Hand-over", "p50, µs", &[series("a"), series("b")]).expect("a chart");
        for word in ["Hand-over", "waiters", "p50, µs", "a", "b", "16", "100"] {
            assert!(svg.contains(&format!("\n{word}\n")), "{word} in {svg}");
        }
        let label = |y| ((0, y), String::new(), INK);
        let places = |labels| {
            apart(labels)
                .into_iter()
                .map(|((_, y), _, _)| y)
                .collect::<Vec<_>>()
        };
        assert_eq!(places(vec![label(7), label(5)]), [5, 21]);
        assert_eq!(places(vec![label(338), label(390)]), [324, 340]);
    }

    #[test]
    fn ticks_lie_within() {
        assert_eq!(ticks(0.9, 21.0), [1.0, 2.0, 5.0, 10.0, 20.0]);
    }
}
