use avt::{Color, Pen, Terminal};

/// The content of a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Screen {
    pub(crate) columns: usize,
    pub(crate) lines: Vec<Line>,
}

/// One line of a screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Shown(Vec<Run>),
    /// The number of lines left out here, so that the picture stays small.
    LeftOut(usize),
}

/// Characters side by side that look alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Of its first character, the leftmost being 0.
    pub(crate) column: usize,
    pub(crate) text: String,
    pub(crate) style: Style,
}

/// How a character looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    /// One of the terminal's own sixteen.
    pub(crate) colour: Option<u8>,
    pub(crate) is_bold: bool,
}

impl Screen {
    /// Returns what a terminal of `columns` by `rows` shows after `written`, without empty lines at the
    /// end.
    pub(crate) fn after(written: &str, (columns, rows): (u16, u16)) -> Self {
        let columns = usize::from(columns);
        let mut terminal = Terminal::new(columns, usize::from(rows)).unwrap();
        terminal.feed(written);
        let shown = terminal.screen();
        let mut lines: Vec<Line> = shown.visible_lines().map(line).collect();
        while lines.last().is_some_and(Line::is_empty) {
            lines.pop();
        }
        Self { columns, lines }
    }

    /// Returns the screen without its last line, if that is exactly `text`.
    pub(crate) fn without_last(mut self, text: &str) -> Self {
        if self.lines.last().is_some_and(|line| line.text() == text) {
            self.lines.pop();
        }
        self
    }

    /// Returns the screen with the lines that `keep` chooses, by their numbers from 0 and their texts. A
    /// mark replaces the other lines.
    pub(crate) fn abridged(self, mut keep: impl FnMut(usize, &str) -> bool) -> Self {
        let mut lines: Vec<Line> = Vec::new();
        for (number, line) in self.lines.into_iter().enumerate() {
            if keep(number, &line.text()) {
                lines.push(line);
            } else if let Some(Line::LeftOut(before)) = lines.last_mut() {
                *before += 1;
            } else {
                lines.push(Line::LeftOut(1));
            }
        }
        Self { lines, ..self }
    }
}

impl Line {
    /// Its characters, with blanks between them and none at the end.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if let Self::Shown(runs) = self {
            for run in runs {
                let missing = run.column - text.chars().count();
                text += &" ".repeat(missing);
                text += &run.text;
            }
        }
        text
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::Shown(runs) if runs.is_empty())
    }
}

/// A run ends where the look changes, or at two blanks.
fn line(of: &avt::Line) -> Line {
    let mut runs: Vec<Run> = Vec::new();
    for (column, cell) in of.cells().iter().enumerate() {
        if cell.char() == ' ' {
            continue;
        }
        assert_eq!(cell.width(), 1, "no picture knows wide characters");
        let style = style(*cell.pen());
        match runs.last_mut() {
            Some(run) if run.style == style && run.end() == column => run.text.push(cell.char()),
            Some(run) if run.style == style && run.end() + 1 == column => {
                run.text.extend([' ', cell.char()]);
            }
            _ => runs.push(Run {
                column,
                text: cell.char().into(),
                style,
            }),
        }
    }
    Line::Shown(runs)
}

impl Run {
    /// The column behind it.
    fn end(&self) -> usize {
        self.column + self.text.chars().count()
    }
}

/// # Panics
///
/// If a picture cannot show this look, since a wrong picture is worse than none.
fn style(pen: Pen) -> Style {
    let colour = match pen.foreground() {
        None => None,
        Some(Color::Indexed(colour @ 0..16)) => Some(colour),
        Some(other) => panic!("no picture knows the colour {other:?}"),
    };
    let plain = !pen.is_inverse() && !pen.is_underline() && !pen.is_italic() && !pen.is_faint();
    assert!(
        plain && pen.background().is_none(),
        "no picture knows {pen:?}"
    );
    Style {
        colour,
        is_bold: pen.is_bold(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: (u16, u16) = (20, 4);

    fn texts(screen: &Screen) -> Vec<String> {
        screen.lines.iter().map(Line::text).collect()
    }

    #[test]
    fn it_is_what_stands_there_in_the_end() {
        let screen = Screen::after("waiting\r\x1b[Kdone\r\n\r\n  ok\r\n", SIZE);
        assert_eq!(texts(&screen), ["done", "", "  ok"]);
        assert_eq!(screen.columns, 20);
    }

    #[test]
    fn status_line_is_cut_at_the_edge() {
        let long = "0123456789abcdefghijklmno";
        let screen = Screen::after(&format!("\x1b[?7l{long}\x1b[K\x1b[?7h"), SIZE);
        assert_eq!(texts(&screen), ["0123456789abcdefghi"]);
        let screen = Screen::after(long, SIZE);
        assert_eq!(texts(&screen), ["0123456789abcdefghij", "klmno"]);
    }

    #[test]
    fn runs_have_their_places_and_looks() {
        let screen = Screen::after("  \x1b[31mred  \x1b[0m x y   \x1b[1;32mz\x1b[0m", SIZE);
        let run = |column, text: &str, colour, is_bold| Run {
            column,
            text: text.into(),
            style: Style { colour, is_bold },
        };
        let expected = [
            run(2, "red", Some(1), false),
            run(8, "x y", None, false),
            run(14, "z", Some(2), true),
        ];
        assert_eq!(screen.lines, [Line::Shown(expected.into())]);
    }

    #[test]
    fn only_the_final_prompt_is_left_out() {
        let screen = Screen::after("$ x\r\ny\r\n$ ", SIZE);
        assert_eq!(texts(&screen.without_last("$")), ["$ x", "y"]);
        let screen = Screen::after("$\r\n$ x", SIZE);
        assert_eq!(texts(&screen.without_last("$")), ["$", "$ x"]);
    }

    #[test]
    fn lines_that_are_left_out_are_counted() {
        let screen = Screen::after("a\r\nb\r\nc\r\nd", SIZE);
        let kept = screen.abridged(|number, text| number == 0 || text == "d");
        assert_eq!(kept.lines[1], Line::LeftOut(2));
        assert_eq!(texts(&kept), ["a", "", "d"]);
    }

    #[test]
    #[should_panic(expected = "no picture knows the colour")]
    fn a_colour_that_cannot_be_drawn_is_named() {
        Screen::after("\x1b[38;5;99mx", SIZE);
    }

    #[test]
    #[should_panic(expected = "no picture knows Pen")]
    fn a_look_that_cannot_be_drawn_is_named() {
        Screen::after("\x1b[7mx", SIZE);
    }
}
