use std::time::Duration;

/// Parses a time to wait: a duration, or a number of seconds, as flock(1) takes it.
pub(crate) fn wait_span(text: &str) -> Result<Duration, String> {
    let is_number = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    match text.parse() {
        Ok(seconds) if is_number => {
            Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
        }
        _ => span(text),
    }
}

/// Parses a duration as people write it: `30s`, `1m30s`, `500ms`.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && text != "0" {
        return Err(format!(
            "a duration needs a unit; write {text}s for seconds"
        ));
    }
    humantime::parse_duration(text)
        .map_err(|error| format!("a duration is written as 30s, 1m30s or 500ms ({error})"))
}
