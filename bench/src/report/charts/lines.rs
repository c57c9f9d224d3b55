use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::{FONT, INK, PALE, Role, WIDTH, failed, short, text};
use crate::report::statistics::Spread;

/// How a figure changes along an axis.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) label: String,
    pub(crate) role: Role,
    pub(crate) points: Vec<Point>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: Spread,
}

/// Both are logarithmic: ratios can be read as distances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axes<'a> {
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
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

/// A line for each series, with its name at its right end.
pub(crate) fn lines(title: &str, axes: Axes<'_>, series: &[Series]) -> Result<String, String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        root.fill(&WHITE).map_err(|error| failed(&error))?;
        let head = text(17, INK, HPos::Left, VPos::Center);
        let drawn = root.draw(&Text::new(title.to_owned(), (14, 24), head));
        drawn.map_err(|error| failed(&error))?;
        for ((x, y), label, colour) in draw(&root, axes, series)? {
            let style = text(13, colour, HPos::Left, VPos::Center);
            let drawn = root.draw(&Text::new(label, (x + 10, y), style));
            drawn.map_err(|error| failed(&error))?;
        }
        root.present().map_err(|error| failed(&error))?;
    }
    Ok(svg)
}

/// Draws axes and lines, and returns the place for the name of each line.
fn draw(
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    axes: Axes<'_>,
    series: &[Series],
) -> Result<Vec<Label>, String> {
    let points = || series.iter().flat_map(|series| &series.points);
    let (x_least, x_most) = bounds(points().map(|point| point.x));
    let ends = |point: &Point| [point.y.least, point.y.most];
    let (y_least, y_most) = bounds(points().flat_map(ends).filter(|y| *y > 0.0));
    let (y_least, y_most) = (y_least / 1.3, y_most * 1.3);
    let mut xs: Vec<f64> = points().map(|point| point.x).collect();
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
        )
        .map_err(|error| failed(&error))?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(PALE)
        .axis_style(INK.mix(0.6))
        .x_desc(axes.x)
        .y_desc(axes.y)
        .x_label_formatter(&|x| short(*x))
        .y_label_formatter(&|y| short(*y))
        .label_style((FONT, 12).into_font().color(&INK))
        .axis_desc_style((FONT, 13).into_font().color(&INK))
        .draw()
        .map_err(|error| failed(&error))?;
    let mut labels = Vec::new();
    for (series, colour) in series.iter().zip(colours(series)) {
        let width = if series.role == Role::Ours { 3 } else { 2 };
        let path = series.points.iter().map(|point| (point.x, point.y.median));
        let path: Vec<(f64, f64)> = path.collect();
        let line = LineSeries::new(path.clone(), colour.stroke_width(width)).point_size(3);
        chart.draw_series(line).map_err(|error| failed(&error))?;
        let spreads = series.points.iter().map(|Point { x, y }| {
            let ends = vec![(*x, y.least.max(y_least)), (*x, y.most)];
            PathElement::new(ends, colour.mix(0.5).stroke_width(1))
        });
        chart.draw_series(spreads).map_err(|error| failed(&error))?;
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
    let mut peers = PEERS.iter().copied().cycle();
    let mut bounds = [RGBColor(0x4f, 0x58, 0x62), RGBColor(0x93, 0x9d, 0xa8)]
        .into_iter()
        .cycle();
    let mut ours = [Role::Ours.colour(), RGBColor(0x5a, 0xa0, 0xf2)]
        .into_iter()
        .cycle();
    let colour = |series: &Series| match series.role {
        Role::Ours => ours.next(),
        Role::Bound => bounds.next(),
        Role::Peer => peers.next(),
    };
    series
        .iter()
        .map(colour)
        .map(|colour| colour.unwrap_or(INK))
        .collect()
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
        let series = |label: &str| Series {
            label: label.into(),
            role: Role::Peer,
            points: [4.0, 16.0]
                .map(|x| Point {
                    x,
                    y: Spread {
                        median: 100.0,
                        least: 90.0,
                        most: 110.0,
                    },
                })
                .into(),
        };
        let axes = Axes {
            x: "waiters",
            y: "p50, µs",
        };
        let svg = lines("Hand-over", axes, &[series("a"), series("b")]).expect("a chart");
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
