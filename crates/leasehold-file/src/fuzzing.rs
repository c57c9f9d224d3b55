//! What the fuzz targets call, one function for each; `fuzz/README.md` says how to run them.

use leasehold::Key;

use crate::format::file_name::{self, Named};
use crate::format::header;
use crate::format::holder_record;
use crate::format::record;

/// What lock files and record files hold, and their names.
///
/// # Panics
///
/// If what was read is not what was written.
pub fn lock_file(bytes: &[u8]) {
    let Ok(key) = Key::new("deploy") else { return };
    let _ = header::named_key(bytes);
    let _ = header::read(bytes, &key);
    let _ = header::read(&sealed_header(bytes), &key);
    for holder in [
        holder_record::decode(bytes),
        holder_record::decode(&sealed_holder(bytes)),
    ] {
        let _ = format!("{holder:?}");
    }
    for bytes in [bytes, &sealed_record(bytes)] {
        if let Ok(content) = record::decode(bytes, None) {
            let again = record::decode(&record::encode(&content, &key), Some(&key));
            assert_eq!(again, Ok(content));
        }
    }
    let name = String::from_utf8_lossy(bytes);
    if let Named::Key(key) = file_name::parse(&name) {
        assert_eq!(file_name::of_key(&key), name);
    }
}

// Chance would hardly find the right checksums.

fn sealed_header(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for slot in [header::HeaderSlot::First, header::HeaderSlot::Second] {
        if let Some(slot) = bytes.get_mut(slot.offset()..slot.offset() + 56) {
            let checksum = crc32fast::hash(&slot[..52]);
            slot[52..].copy_from_slice(&checksum.to_le_bytes());
        }
    }
    bytes
}

fn sealed_holder(bytes: &[u8]) -> Vec<u8> {
    let checksum = crc32fast::hash(bytes);
    [bytes, format!("checksum {checksum:08x}\n\0").as_bytes()].concat()
}

fn sealed_record(bytes: &[u8]) -> Vec<u8> {
    [bytes, &crc32fast::hash(bytes).to_le_bytes()].concat()
}

#[cfg(test)]
mod tests {
    #[test]
    fn files_of_any_bytes_are_read_safely() {
        leasehold_testkit::feed_seeds("lock_file", 2_000, super::lock_file);
    }
}
