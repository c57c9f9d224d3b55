//! The last line: the keys, or what the program asks for. On a narrow screen, names are cut, and not what to type.
#![deny(clippy::disallowed_types)]

use std::time::Duration;

use unicode_width::UnicodeWidthStr as _;

use crate::commands::looking::top::state::{Break, Prompt, Top};
use crate::output::table::cut;
use crate::output::time_text::coarse;

/// What the keys do, or what the program asks for, on a screen of `width` columns.
pub(super) fn prompt(top: &Top, width: usize) -> String {
    let notice = top.notice.as_deref();
    match &top.prompt {
        Prompt::Filter => format!("filter: {}_   (Enter: keep, Esc: all)", top.filter),
        Prompt::Reason(breaking) => reason(breaking, notice.unwrap_or_default(), width),
        Prompt::Confirm(breaking) => {
            let (begin, question) = ("break ", "? y: yes, any other key: no");
            let room = width.saturating_sub(begin.width() + question.width());
            let lock = cut(breaking.lock.as_str(), room);
            format!("{begin}{lock}{question}   held by {}", breaking.holder)
        }
        Prompt::Help => "any key: back to the locks".into(),
        Prompt::Browse => notice.map_or_else(|| keys(top.interval, width), str::to_owned),
    }
}

/// What the keys do. On a narrow screen, those that the help explains are left out.
fn keys(interval: Duration, width: usize) -> String {
    let keys = format!(
        "q quit   ↑↓ select   / filter   s sort   b break   ? help   (every {})",
        coarse_or_millis(interval)
    );
    if keys.width() <= width {
        return keys;
    }
    "q quit   / filter   b break   ? help".into()
}

/// The question for a reason, with the end of what was typed.
fn reason(breaking: &Break, notice: &str, width: usize) -> String {
    let (begin, hint) = ("reason to break ", format!("   (Esc: cancel)   {notice}"));
    let typed = breaking.reason.as_str();
    let others = begin.width() + typed.width() + ": _".width() + hint.trim_end().width();
    let lock = cut(
        breaking.lock.as_str(),
        width.saturating_sub(others).max(NAME_MIN),
    );
    let room = width.saturating_sub(begin.width() + lock.width() + ": _".width());
    format!("{begin}{lock}: {}_{hint}", end_of(typed, room))
}

/// The end of `text` that fits into `width` columns.
fn end_of(text: &str, width: usize) -> String {
    let reversed: String = text.chars().rev().collect();
    cut(&reversed, width).chars().rev().collect()
}

fn coarse_or_millis(span: Duration) -> String {
    match span.subsec_millis() {
        0 => coarse(span),
        _ => format!("{}ms", span.as_millis()),
    }
}

/// How many columns the name of a lock keeps next to a long reason.
const NAME_MIN: usize = 8;
