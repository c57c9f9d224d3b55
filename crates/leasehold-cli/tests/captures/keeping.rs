use std::fs;
use std::path::{Path, PathBuf};

use crate::picture::Picture;
use crate::svg;

/// Compares `picture` with the file `name` under `docs/`; or writes that file, where
/// `LEASEHOLD_CAPTURES` is `draw`.
///
/// # Panics
///
/// If they are not the same to the byte, with the first line that differs.
pub(crate) fn keep(name: &str, picture: &Picture) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let drawn = svg::draw(picture);
    let may_write =
        std::env::var("LEASEHOLD_CAPTURES").is_ok_and(|lock_options| lock_options == "draw");
    if let Err(text) = hold_against(&docs.join(name), &drawn, may_write) {
        panic!("{text}");
    }
}

/// Whether the file at `path` is `drawn`, or has become so.
#[expect(
    clippy::print_stdout,
    reason = "who has pictures drawn is told of which"
)]
fn hold_against(path: &Path, drawn: &str, may_write: bool) -> Result<(), String> {
    let file = PathBuf::from(path.file_name().unwrap_or_default());
    let file = file.display();
    let kept = fs::read_to_string(path).unwrap_or_default();
    if kept == drawn {
        return Ok(());
    }
    if may_write {
        println!("docs/{file} is drawn anew");
        return fs::write(path, drawn).map_err(|error| format!("docs/{file}: {error}"));
    }
    Err(format!(
        "docs/{file} is not what the program shows today:\n{}\n`cargo xtask captures` draws it anew",
        difference(&kept, drawn)
    ))
}

/// The first line in which two texts that are not the same differ.
fn difference(kept: &str, drawn: &str) -> String {
    let (mut kept, mut drawn) = (kept.split('\n'), drawn.split('\n'));
    for number in 1.. {
        match (kept.next(), drawn.next()) {
            (None, None) => break,
            (kept, drawn) if kept == drawn => {}
            (kept, drawn) => {
                let of = |line: Option<&str>| line.unwrap_or("(no such line)").to_owned();
                let (kept, drawn) = (of(kept), of(drawn));
                return format!("line {number}\n  kept:  {kept}\n  drawn: {drawn}");
            }
        }
    }
    "nothing differs".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_byte_fails_without_writing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.svg");
        fs::write(&path, "<svg>\n<text>a</text>\n</svg>\n").unwrap();
        let drawn = "<svg>\n<text>b</text>\n</svg>\n";
        let text = hold_against(&path, drawn, false).unwrap_err();
        assert_eq!(
            text,
            "docs/x.svg is not what the program shows today:\nline 2\n  kept:  <text>a</text>\n  \
             drawn: <text>b</text>\n`cargo xtask captures` draws it anew"
        );
        assert_eq!(fs::read_to_string(&path).unwrap().len(), drawn.len());
        assert!(fs::read_to_string(&path).unwrap().contains('a'));
        hold_against(&path, drawn, true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), drawn);
        hold_against(&path, drawn, false).unwrap();
    }

    #[test]
    fn missing_end_and_missing_file_differ() {
        assert!(difference("a\n", "a").starts_with("line 2\n"));
        assert!(difference("a", "a\nb").contains("(no such line)"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new.svg");
        let text = hold_against(&path, "<svg/>\n", false).unwrap_err();
        assert!(text.contains("line 1\n"), "{text}");
        assert!(!path.exists());
    }
}
