use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::{Area, INK, PALE, colour_of, short, svg, text, write};
use crate::error::Fallible;
use crate::measure::subject::Role;
use crate::report::statistics::Spread;

/// A subject's figure, and between which two it lay.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) value: Spread,
    pub(crate) role: Role,
}

impl Bar {
    /// `None` without a value.
    pub(crate) fn of(label: &str, role: Role, value: Option<Spread>) -> Option<Self> {
        let label = label.into();
        value.map(|value| Self { label, value, role })
    }
}

/// Bars that are compared with each other, on a scale of their own.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) title: String,
    pub(crate) bars: Vec<Bar>,
}

const LEFT: i32 = 190;
const RIGHT: i32 = 700;
const BAR: i32 = 15;
const STEP: i32 = 21;
const HEAD: i32 = 48;
const GROUP_HEAD: i32 = 30;
const GROUP_GAP: i32 = 12;

/// Horizontal bars in groups, one below the other; `line` marks what others are set against.
pub(crate) fn bars(title: &str, line: Option<f64>, groups: &[Group]) -> Fallible<String> {
    let heights = groups.iter().map(height);
    let all = HEAD + heights.sum::<i32>() + 6;
    svg(title, all.unsigned_abs(), |root| {
        let mut top = HEAD;
        for group in groups {
            draw_group(root, group, line, top)?;
            top += height(group);
        }
        Ok(())
    })
}

fn draw_group(root: &Area<'_>, group: &Group, line: Option<f64>, top: i32) -> Fallible {
    let greatest = group.bars.iter().map(|bar| bar.value.most).chain(line);
    let greatest = greatest.fold(f64::MIN_POSITIVE, f64::max);
    #[expect(clippy::cast_possible_truncation, reason = "pixels")]
    let at = |value: f64| LEFT + (f64::from(RIGHT - LEFT) * value / greatest) as i32;
    let place = (14, top + GROUP_HEAD / 2);
    write(root, &group.title, place, text(14, INK, HPos::Left))?;
    let first = top + GROUP_HEAD;
    let last = top + height(group) - GROUP_GAP;
    if let Some(line) = line {
        let ends = [(at(line), first - 4), (at(line), last - 2)];
        draw_line(root, ends, INK.mix(0.45))?;
    }
    draw_line(root, [(LEFT, first - 4), (LEFT, last - 2)], PALE.mix(1.0))?;
    for (bar, y) in group
        .bars
        .iter()
        .zip((first..).step_by(STEP.unsigned_abs() as usize))
    {
        draw_bar(root, bar, y, at)?;
    }
    Ok(())
}

fn draw_bar(root: &Area<'_>, bar: &Bar, y: i32, at: impl Fn(f64) -> i32) -> Fallible {
    let middle = y + BAR / 2;
    let filled = colour_of(bar.role);
    let colour = if bar.role == Role::Ours { filled } else { INK };
    write(
        root,
        &bar.label,
        (LEFT - 8, middle),
        text(13, colour, HPos::Right),
    )?;
    let corners = [(LEFT, y), (at(bar.value.median), y + BAR)];
    root.draw(&Rectangle::new(corners, filled.filled()))?;
    let (least, most) = (at(bar.value.least), at(bar.value.most));
    draw_line(root, [(least, middle), (most, middle)], INK.mix(0.7))?;
    for x in [least, most] {
        draw_line(root, [(x, middle - 3), (x, middle + 3)], INK.mix(0.7))?;
    }
    let place = (most.max(at(bar.value.median)) + 6, middle);
    write(
        root,
        &short(bar.value.median),
        place,
        text(12, colour, HPos::Left),
    )
}

fn draw_line(root: &Area<'_>, ends: [(i32, i32); 2], colour: RGBAColor) -> Fallible {
    Ok(root.draw(&PathElement::new(ends, colour))?)
}

fn height(group: &Group) -> i32 {
    let rows = i32::try_from(group.bars.len()).unwrap_or(i32::MAX / STEP);
    GROUP_HEAD + GROUP_GAP + STEP * rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bar_has_its_name_and_its_figure() {
        let bar = |label: &str, median: f64| Bar {
            label: label.into(),
            value: Spread {
                median,
                least: median * 0.9,
                most: median * 1.1,
            },
            role: Role::Peer,
        };
        let group = Group {
            title: "One at a time".into(),
            bars: vec![bar("a", 1.0), bar("b", 0.25)],
        };
        let svg = bars("Ratios", Some(1.0), &[group]).expect("a chart");
        for word in ["Ratios", "One at a time", "a", "b", "0.25"] {
            assert!(svg.contains(&format!("\n{word}\n")), "{word} in {svg}");
        }
    }
}
