//! The functions that the fuzz targets call, one for each; `fuzz/README.md` describes how to run them.

use crate::election::Announcement;
use crate::handle::Handle;
use crate::handle::text as handle_text;
use crate::once::OnceState;
use crate::types::{DataGeneration, Key, Owner, Pattern};

/// The text of a handle, and what is inside it.
pub fn handle(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let of_text = text.parse::<Handle>().ok();
    // Random input hardly ever has the right checksum.
    for handle in of_text.into_iter().chain(handle_text::read(bytes)) {
        let again = handle.reveal().parse::<Handle>();
        assert!(again.is_ok_and(|again| again == handle), "{handle:?}");
    }
}

/// The contents of records, and names.
pub fn record(bytes: &[u8]) {
    if let Ok(state) = OnceState::decode(bytes) {
        assert_eq!(state.encode(), bytes);
    }
    if let Ok(Some(announcement)) = Announcement::read(bytes) {
        let again = Announcement::read(announcement.to_string().as_bytes());
        assert_eq!(again.ok(), Some(Some(announcement)));
    }
    let text = String::from_utf8_lossy(bytes);
    if let Ok(owner) = text.parse::<Owner>() {
        assert_eq!(owner.to_string(), text);
    }
    if let Some(data_generation) = DataGeneration::parse(&text) {
        assert_eq!(data_generation.to_string(), text.to_ascii_lowercase());
    }
    if let (Ok(key), Ok(pattern)) = (Key::new(&*text), Pattern::new(&*text)) {
        let _ = pattern.matches(key.as_str());
    }
}

#[cfg(test)]
mod tests {
    use leasehold_testkit::feed_seeds;

    #[test]
    fn handles_of_any_bytes_are_read_safely() {
        feed_seeds("handle", 2_000, super::handle);
    }

    #[test]
    fn records_of_any_bytes_are_read_safely() {
        feed_seeds("record", 2_000, super::record);
    }
}
