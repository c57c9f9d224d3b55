//! Text in aligned columns, and what goes into them.

use std::io::{self, IsTerminal as _};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// A column of a table that is fitted to a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// Columns with a smaller rank stay longer when the terminal is narrow.
    pub(crate) rank: u8,
    /// Texts are cut to this width at least; `None` if a part of a text says nothing.
    pub(crate) cut: Option<usize>,
}

impl Column {
    pub(crate) const fn whole(title: &'static str, rank: u8) -> Self {
        let cut = None;
        Self { title, rank, cut }
    }

    pub(crate) const fn cut(title: &'static str, rank: u8, cut: usize) -> Self {
        let cut = Some(cut);
        Self { title, rank, cut }
    }
}

/// The columns that are shown, and how wide each is.
///
/// Pure: the width of the terminal is a value.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The columns in their order: the index and the width.
    shown: Vec<(usize, usize)>,
}

/// The space between two columns.
const GAP: usize = 2;
/// A cell without a value.
pub(crate) const UNKNOWN: &str = "-";

impl Layout {
    /// Fits the columns to `width`; without one, nothing is cut. A column without any value is left out, except for the
    /// first.
    pub(crate) fn fit<'a>(
        columns: &[Column],
        rows: impl Iterator<Item = &'a [String]>,
        width: Option<usize>,
    ) -> Self {
        let mut natural: Vec<usize> = vec![0; columns.len()];
        for row in rows {
            for (most, cell) in natural.iter_mut().zip(row) {
                let is_value = !cell.is_empty() && cell != UNKNOWN;
                *most = (*most).max(if is_value { cell.width() } else { 0 });
            }
        }
        let filled = (0..columns.len()).filter(|index| *index == 0 || natural[*index] > 0);
        let mut ranked: Vec<usize> = filled.collect();
        ranked.sort_by_key(|index| columns[*index].rank);
        for (most, column) in natural.iter_mut().zip(columns) {
            *most = (*most).max(column.title.len());
        }
        let width = width.unwrap_or(usize::MAX);
        let mut left = width.saturating_add(GAP);
        let mut shown: Vec<(usize, usize)> = Vec::new();
        for index in ranked {
            let cut = columns[index].cut.unwrap_or(usize::MAX);
            let least = natural[index].min(cut);
            if least + GAP <= left || shown.is_empty() {
                left = left.saturating_sub(least + GAP);
                shown.push((index, least));
            }
        }
        // What is left goes to the columns that are cut, in turn.
        while left > 0 {
            let before = left;
            for (index, width) in &mut shown {
                if *width < natural[*index] && left > 0 {
                    *width += 1;
                    left -= 1;
                }
            }
            if left == before {
                break;
            }
        }
        shown.sort_unstable();
        Self { shown }
    }

    /// The titles of the columns.
    pub(crate) fn head(&self, columns: &[Column]) -> String {
        let titles: Vec<String> = columns.iter().map(|it| it.title.to_owned()).collect();
        self.line(&titles)
    }

    /// One row, without trailing blanks.
    pub(crate) fn line(&self, row: &[String]) -> String {
        let cell = |(index, width): &(usize, usize)| {
            let text = cut(&row[*index], *width);
            padded(&text, *width)
        };
        let cells: Vec<String> = self.shown.iter().map(cell).collect();
        cells.join("  ").trim_end().to_owned()
    }
}

/// The part of `text` that fits into `width` columns of a terminal, which shows some characters in two.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let fits = |c: &char| {
        let columns = c.width().unwrap_or(0);
        let fits = columns <= left;
        left = left.saturating_sub(columns);
        fits
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// `text` with blanks up to `width` columns of a terminal.
pub(crate) fn padded(text: &str, width: usize) -> String {
    let blanks = width.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(blanks))
}

/// The table of `rows` with its head, one line each.
pub(crate) fn fitted(columns: &[Column], rows: &[Vec<String>], width: Option<usize>) -> String {
    let layout = Layout::fit(columns, rows.iter().map(Vec::as_slice), width);
    let head = [layout.head(columns)].into_iter();
    let lines = head.chain(rows.iter().map(|row| layout.line(row)));
    lines.map(|line| line + "\n").collect()
}

/// How wide a table on stdout may be. `None` without a terminal, where a program or a file keeps whole lines.
pub(crate) fn terminal_width() -> Option<usize> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let (width, _) = terminal_size::terminal_size_of(&stdout)?;
    (width.0 > 0).then(|| usize::from(width.0))
}

/// The rows in columns, each as wide as its widest text, all aligned to the left.
#[cfg(feature = "redis")]
pub(crate) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let cell = |(column, text): (usize, &String)| padded(text, widths[column]);
    let line = |row: &[String; N]| {
        let cells: Vec<_> = row.iter().enumerate().map(cell).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// A duration to three digits, as `87µs`, `1.23ms` or `12.3ms`.
#[cfg(any(
    feature = "etcd",
    feature = "postgres",
    feature = "redis",
    feature = "zookeeper"
))]
pub(crate) fn short(span: std::time::Duration) -> String {
    let millis = span.as_secs_f64() * 1e3;
    match millis {
        ..0.9995 => format!("{:.0}µs", millis * 1e3),
        ..9.995 => format!("{millis:.2}ms"),
        ..99.95 => format!("{millis:.1}ms"),
        _ => format!("{millis:.0}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "redis")]
    #[test]
    fn columns_are_as_wide_as_their_texts() {
        let rows = [["NAME", "N"], ["é", "100"]].map(|row| row.map(String::from));
        assert_eq!(columns(&rows), "NAME  N\né     100\n");
    }

    const COLUMNS: [Column; 4] = [
        Column::cut("LOCK", 0, 6),
        Column::whole("USER", 3),
        Column::whole("PID", 1),
        Column::cut("COMMAND", 2, 8),
    ];

    fn table(width: Option<usize>) -> Vec<String> {
        let row = ["deploy/web", "ann", "4711", "./deploy.sh --all"];
        let rows = [row.map(String::from).to_vec()];
        let text = fitted(&COLUMNS, &rows, width);
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn narrow_tables_keep_the_first_ranks() {
        assert_eq!(table(None)[1], "deploy/web  ann   4711  ./deploy.sh --all");
        assert_eq!(
            table(Some(24)),
            ["LOCK     PID   COMMAND", "deploy…  4711  ./deploy…"].map(String::from)
        );
        assert_eq!(table(Some(12))[1], "deplo…  4711");
        assert_eq!(table(Some(3))[1], "deplo…");
    }

    #[test]
    fn no_line_exceeds_the_width() {
        for width in 6..60 {
            for line in table(Some(width)) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let rows = ["北京部署锁", "e\u{301}t\u{e9}"]
            .map(|name| vec![name.into(), "ann".into(), "7".into(), "x".into()]);
        let shown = |width| fitted(&COLUMNS, &rows, width);
        assert_eq!(
            shown(None),
            "LOCK        USER  PID  COMMAND\n\
             北京部署锁  ann   7    x\n\
             e\u{301}t\u{e9}         ann   7    x\n"
        );
        let narrow = shown(Some(21));
        assert!(narrow.contains("\n北京部…  7    x\n"), "{narrow}");
    }

    #[test]
    fn column_without_values_is_left_out() {
        let row = ["a", "-", "7", "-"].map(String::from).to_vec();
        assert_eq!(fitted(&COLUMNS, &[row], None), "LOCK  PID\na     7\n");
    }
}
