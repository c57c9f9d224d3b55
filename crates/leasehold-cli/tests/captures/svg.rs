//! Pure: a picture as SVG.
//!
//! `textLength` puts each character in its place on a grid, in any font of the reader's machine. Text
//! stays text. The terminals have their own background, so that they look the same on a light and on a
//! dark page.

use std::fmt::Write as _;

use crate::picture::{Pane, Picture};
use crate::screen::{Line, Run, Style};

/// `picture` as the text of a file.
pub(crate) fn draw(picture: &Picture) -> String {
    let columns = picture.panes.iter().map(|pane| pane.screen.columns);
    let width = columns.max().unwrap_or(0) * CELL + 2 * PADDING + 2;
    let mut body = String::new();
    let mut top = 0;
    for pane in &picture.panes {
        if top > 0 {
            top += GAP;
        }
        body += &draw_pane(pane, top, width);
        top += height(pane);
    }
    let (title, description) = (escaped(picture.title), escaped(picture.description));
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" width="{width}" height="{top}" role="img" aria-labelledby="title desc">
<!-- Drawn by `cargo xtask captures` from what the program wrote. -->
<title id="title">{title}</title>
<desc id="desc">{description}</desc>
<style>{STYLE}</style>
{body}</svg>
"#
    )
}

const STYLE: &str = r#"
text { font: 13.3px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace; fill: #d7dde5; }
.pane { fill: #10151c; stroke: #39434f; } .bar { fill: #1b232d; } .dot { fill: #39434f; }
.caption, .mark { fill: #94a0b0; } .caption { font-size: 12.5px; } .mark { font-style: italic; }
.b { font-weight: bold; fill: #f4f7fa; }
.c1, .c9 { fill: #ff8a84; } .c2, .c10 { fill: #7fd1a6; } .c3, .c11 { fill: #e9c46a; } .c4, .c12 { fill: #82b4ff; }
.c5, .c13 { fill: #d3a4f9; } .c6, .c14 { fill: #6fd3e0; } .c7, .c15 { fill: #d7dde5; } .c0, .c8 { fill: #94a0b0; }
"#;

/// In pixels. A character is 0.602 times as wide as high in the usual fonts.
const CELL: usize = 8;
const LINE: usize = 19;
const PADDING: usize = 14;
const BAR: usize = 27;
const GAP: usize = 10;

fn height(pane: &Pane) -> usize {
    BAR + pane.screen.lines.len() * LINE + 2 * PADDING - 4
}

fn draw_pane(pane: &Pane, top: usize, width: usize) -> String {
    let mut text = String::new();
    let height = height(pane);
    let (inner, lower) = (width - 1, height - 1);
    let caption = escaped(pane.caption);
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        r#"<g transform="translate(0 {top})">
<rect class="pane" x="0.5" y="0.5" width="{inner}" height="{lower}" rx="7"/>
<path class="bar" d="M1 {BAR}V8a7 7 0 0 1 7-7H{right}a7 7 0 0 1 7 7V{BAR}Z"/>
<circle class="dot" cx="18" cy="14" r="4.5"/><circle class="dot" cx="33" cy="14" r="4.5"/><circle class="dot" cx="48" cy="14" r="4.5"/>
<text class="caption" x="64" y="18.5">{caption}</text>
"#,
        right = width - 8,
    );
    for (number, line) in pane.screen.lines.iter().enumerate() {
        let base = BAR + PADDING + number * LINE + 11;
        match line {
            Line::Shown(runs) => text.extend(runs.iter().map(|run| draw_run(run, base))),
            Line::LeftOut(count) => {
                let lines = if *count == 1 { "line" } else { "lines" };
                let x = PADDING + 2 * CELL;
                let _ = writeln!(
                    text,
                    r#"<text class="mark" x="{x}" y="{base}">⋯ {count} more {lines}</text>"#
                );
            }
        }
    }
    text + "</g>\n"
}

fn draw_run(run: &Run, base: usize) -> String {
    let x = PADDING + run.column * CELL;
    let length = run.text.chars().count() * CELL;
    let class = class(run.style);
    let text = escaped(&run.text);
    format!(
        r#"<text{class} x="{x}" y="{base}" textLength="{length}" lengthAdjust="spacingAndGlyphs">{text}</text>
"#
    )
}

fn class(style: Style) -> String {
    let bold = style.is_bold.then(|| "b".to_owned());
    let colour = style.colour.map(|colour| format!("c{colour}"));
    let names: Vec<String> = bold.into_iter().chain(colour).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!(r#" class="{}""#, names.join(" "))
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Screen;

    fn pane(written: &str) -> Pane {
        Pane {
            caption: "a <shell>",
            screen: Screen::after(written, (40, 9)),
        }
    }

    fn picture(panes: Vec<Pane>) -> String {
        draw(&Picture {
            title: "What & why",
            description: "\"Told\" in words",
            panes,
        })
    }

    #[test]
    fn characters_stand_on_a_grid_and_stay_text() {
        let text = picture(vec![pane("ab  \x1b[1;31mc<d\x1b[0m\r\ne")]);
        for run in [
            r#"<text x="14" y="52" textLength="16" lengthAdjust="spacingAndGlyphs">ab</text>"#,
            r#"<text class="b c1" x="46" y="52" textLength="24" lengthAdjust="spacingAndGlyphs">c&lt;d</text>"#,
            r#"<text x="14" y="71" textLength="8" lengthAdjust="spacingAndGlyphs">e</text>"#,
        ] {
            assert!(text.contains(run), "{run} in {text}");
        }
    }

    #[test]
    fn every_colour_of_a_screen_has_a_rule() {
        for colour in 0..16 {
            assert!(
                STYLE.contains(&format!(".c{colour} ")) || STYLE.contains(&format!(".c{colour},"))
            );
        }
    }

    #[test]
    fn picture_has_a_text_description() {
        let text = picture(vec![pane("x")]);
        assert!(
            text.contains(r#"<title id="title">What &amp; why</title>"#),
            "{text}"
        );
        assert!(text.contains(r#"<desc id="desc">&quot;Told&quot; in words</desc>"#));
        assert!(text.contains(">a &lt;shell&gt;</text>"));
        assert!(text.contains(r#"role="img" aria-labelledby="title desc""#));
    }

    #[test]
    fn panes_are_stacked_and_visible() {
        let one = picture(vec![pane("x")]);
        assert!(
            one.contains(r#"viewBox="0 0 350 70" width="350" height="70""#),
            "{one}"
        );
        let two = picture(vec![pane("x"), pane("y\r\nz")]);
        assert!(two.contains(r#"<g transform="translate(0 80)">"#), "{two}");
        assert!(two.contains(r#"viewBox="0 0 350 169""#), "{two}");
    }

    #[test]
    fn omission_is_marked_outside_the_screen() {
        let screen = Screen::after("a\r\nb\r\nc\r\nd", (40, 9));
        let abridged = |pane: Pane, kept: &'static [&'static str]| Pane {
            screen: screen.clone().abridged(|_, text| kept.contains(&text)),
            ..pane
        };
        let text = picture(vec![abridged(pane(""), &["a", "d"])]);
        assert!(
            text.contains(r#"<text class="mark" x="30" y="71">⋯ 2 more lines</text>"#),
            "{text}"
        );
        let text = picture(vec![abridged(pane(""), &["a", "b", "d"])]);
        assert!(text.contains(">⋯ 1 more line</text>"), "{text}");
    }
}
