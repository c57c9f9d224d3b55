//! Text in aligned columns, and what goes into them.

/// The rows in columns, each as wide as its widest text, all aligned to the left.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let cell = |(column, text): (usize, &String)| {
        let width = widths[column];
        format!("{text:width$}")
    };
    let line = |row: &[String; N]| {
        let cells: Vec<_> = row.iter().enumerate().map(cell).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// A duration to three digits, as `87µs`, `1.23ms` or `12.3ms`.
#[cfg(feature = "redis")]
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

    #[test]
    fn columns_are_as_wide_as_their_texts() {
        let rows = [["NAME", "N"], ["é", "100"]].map(|row| row.map(String::from));
        assert_eq!(columns(&rows), "NAME  N\né     100\n");
    }
}
