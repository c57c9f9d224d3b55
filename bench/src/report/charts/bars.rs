use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::{INK, PALE, Role, WIDTH, failed, short, text};
use crate::report::statistics::Spread;

/// A subject's figure, and between which two it lay.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) value: Spread,
    pub(crate) role: Role,
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
pub(crate) fn bars(title: &str, line: Option<f64>, groups: &[Group]) -> Result<String, String> {
    let heights = groups
        .iter()
        .map(|group| GROUP_HEAD + GROUP_GAP + STEP * rows(group));
    let height = HEAD + heights.sum::<i32>() + 6;
    let mut svg = String::new();
    {
        let size = (WIDTH, height.unsigned_abs());
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).map_err(|error| failed(&error))?;
        let bold = text(17, INK, HPos::Left, VPos::Center);
        draw(&root, &Text::new(title.to_owned(), (14, 24), bold))?;
        let mut top = HEAD;
        for group in groups {
            draw_group(&root, group, line, top)?;
            top += GROUP_HEAD + GROUP_GAP + STEP * rows(group);
        }
        root.present().map_err(|error| failed(&error))?;
    }
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw_group(root: &Area<'_>, group: &Group, line: Option<f64>, top: i32) -> Result<(), String> {
    let greatest = group.bars.iter().map(|bar| bar.value.most).chain(line);
    let greatest = greatest.fold(f64::MIN_POSITIVE, f64::max);
    #[expect(clippy::cast_possible_truncation, reason = "pixels")]
    let at = |value: f64| LEFT + (f64::from(RIGHT - LEFT) * value / greatest) as i32;
    let head = text(14, INK, HPos::Left, VPos::Center);
    draw(
        root,
        &Text::new(group.title.clone(), (14, top + GROUP_HEAD / 2), head),
    )?;
    let first = top + GROUP_HEAD;
    let last = first + STEP * rows(group);
    if let Some(line) = line {
        let ends = vec![(at(line), first - 4), (at(line), last - 2)];
        draw(root, &PathElement::new(ends, INK.mix(0.45).stroke_width(1)))?;
    }
    draw(
        root,
        &PathElement::new(vec![(LEFT, first - 4), (LEFT, last - 2)], PALE),
    )?;
    let mut y = first;
    for bar in &group.bars {
        let middle = y + BAR / 2;
        let own = bar.role == Role::Ours;
        let colour = if own { Role::Ours.colour() } else { INK };
        let label = text(13, colour, HPos::Right, VPos::Center);
        draw(
            root,
            &Text::new(bar.label.clone(), (LEFT - 8, middle), label),
        )?;
        let filled = bar.role.colour().filled();
        draw(
            root,
            &Rectangle::new([(LEFT, y), (at(bar.value.median), y + BAR)], filled),
        )?;
        let (least, most) = (at(bar.value.least), at(bar.value.most));
        draw(
            root,
            &PathElement::new(vec![(least, middle), (most, middle)], INK.mix(0.7)),
        )?;
        for x in [least, most] {
            let ends = vec![(x, middle - 3), (x, middle + 3)];
            draw(root, &PathElement::new(ends, INK.mix(0.7)))?;
        }
        let x = most.max(at(bar.value.median)) + 6;
        let value = text(12, colour, HPos::Left, VPos::Center);
        draw(
            root,
            &Text::new(short(bar.value.median), (x, middle), value),
        )?;
        y += STEP;
    }
    Ok(())
}

fn rows(group: &Group) -> i32 {
    i32::try_from(group.bars.len()).unwrap_or(i32::MAX / STEP)
}

fn draw<'a, E>(root: &Area<'_>, element: &'a E) -> Result<(), String>
where
    &'a E: plotters::element::PointCollection<'a, (i32, i32)>,
    E: for<'b> plotters::element::Drawable<SVGBackend<'b>>,
{
    root.draw(element).map_err(|error| failed(&error))
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
