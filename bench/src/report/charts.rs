//! Charts as SVG, in the one look of the report.

mod bars;
mod lines;

pub(crate) use bars::{Bar, Group, bars};
pub(crate) use lines::{Series, lines};

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::error::Fallible;
use crate::measure::subject::Role;

fn colour_of(role: Role) -> RGBColor {
    match role {
        Role::Ours => RGBColor(0x1f, 0x5f, 0xbf),
        Role::Bound => RGBColor(0x9a, 0xa3, 0xad),
        Role::Peer => RGBColor(0xe0, 0x9f, 0x5a),
    }
}

const WIDTH: u32 = 760;
const INK: RGBColor = RGBColor(0x24, 0x29, 0x2f);
const PALE: RGBColor = RGBColor(0xd8, 0xdd, 0xe3);
const FONT: &str = "Helvetica, Arial, sans-serif";

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Starts an SVG of that height with its title, and lets `draw` add the rest.
fn svg(title: &str, height: u32, draw: impl FnOnce(&Area<'_>) -> Fallible) -> Fallible<String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE)?;
        write(&root, title, (14, 24), text(17, INK, HPos::Left))?;
        draw(&root)?;
        root.present()?;
    }
    Ok(svg)
}

fn write(root: &Area<'_>, words: &str, at: (i32, i32), style: TextStyle<'_>) -> Fallible {
    Ok(root.draw(&Text::new(words.to_owned(), at, style))?)
}

/// Text of `size`; `side` says which end of its middle line its position names.
fn text(size: i32, colour: RGBColor, side: HPos) -> TextStyle<'static> {
    let font = FontDesc::new(FontFamily::Name(FONT), f64::from(size), FontStyle::Normal);
    TextStyle {
        font,
        color: colour.to_backend_color(),
        pos: Pos::new(side, VPos::Center),
    }
}

/// Formats a value as short as is readable: `1.05`, `23`, `4,200`.
fn short(value: f64) -> String {
    match value {
        value if value >= 1000.0 => {
            let digits = format!("{value:.0}");
            let (thousands, rest) = digits.split_at(digits.len() - 3);
            format!("{thousands},{rest}")
        }
        value if value >= 10.0 => format!("{value:.0}"),
        value if value >= 0.1 => trimmed(&format!("{value:.2}")),
        value => trimmed(&format!("{value:.3}")),
    }
}

fn trimmed(number: &str) -> String {
    number.trim_end_matches('0').trim_end_matches('.').into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_can_be_read() {
        let values = [4200.4, 230_000.0, 23.4, 1.051, 0.5, 1.0, 0.012];
        let texts = ["4,200", "230,000", "23", "1.05", "0.5", "1", "0.012"];
        assert_eq!(values.map(short), texts);
    }
}
