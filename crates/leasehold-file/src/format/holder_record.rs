//! The holders of a lock: one record for each holder, behind the header of the lock file.
//!
//! The record of seat *n* is valid exactly while its first byte is locked ([`crate::kernel::range_lock`]). The
//! kernel frees that lock when the holder dies. So a record left behind never names a holder that is
//! gone, and the store need not wipe any.

use std::fmt::Write as _;

use leasehold::clock::WallTime;
use leasehold::look::{ClientInfo, Holder};
use leasehold::store::{LockRequest, Permits, printable};
use leasehold::{Fence, Mode};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::format::header;

/// How many shared holders can have a record in one lock file; further ones hold without a record.
/// record.
pub(crate) const SEATS: u64 = 1024;

pub(crate) const LENGTH: usize = 1024;

/// The offset of the record of `seat`.
pub(crate) const fn offset(seat: u64) -> u64 {
    header::LENGTH as u64 + seat * LENGTH as u64
}

/// How many seats a file of `length` bytes may have records for.
pub(crate) fn seats_in(length: u64) -> u64 {
    length
        .saturating_sub(offset(0))
        .div_ceil(LENGTH as u64)
        .min(SEATS)
}

/// Encodes the record of the holder that `request` becomes with `fence`. It is lines of text, for
/// people who look into the file, and ends with a checksum, because it may be read while it is
/// written.
pub(crate) fn encode(request: &LockRequest, fence: Fence) -> [u8; LENGTH] {
    let client = &request.client;
    let mut text = format!("{TITLE}\nowner {}\nmode {}\n", request.owner, request.mode);
    // Writing into a String cannot fail.
    let _ = write!(
        text,
        "fence {fence}\nhost {}\npid {}\nprogram {}\nsince {}\n",
        shortened(&client.host, NAME_MAX),
        client.pid,
        shortened(&client.program, NAME_MAX),
        client.since.as_micros(),
    );
    for (name, value, bytes_max) in [
        ("user", &client.user, ClientInfo::LABEL_MAX),
        ("label", &client.label, ClientInfo::LABEL_MAX),
        ("command", &client.command, ClientInfo::COMMAND_MAX),
    ] {
        if let Some(value) = value {
            let _ = writeln!(text, "{name} {}", shortened(value, bytes_max));
        }
    }
    let checksum = crc32fast::hash(text.as_bytes());
    let _ = writeln!(text, "{CHECKSUM}{checksum:08x}");
    let mut bytes = [0; LENGTH];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

/// Reads a record; `None` if it is not whole.
pub(crate) fn decode(bytes: &[u8]) -> Option<Holder> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    let (text, checksum) = text.split_at(text.rfind(CHECKSUM)?);
    let checksum = checksum.strip_prefix(CHECKSUM)?.strip_suffix('\n')?;
    if u32::from_str_radix(checksum, 16) != Ok(crc32fast::hash(text.as_bytes())) {
        return None;
    }
    let text = text.strip_prefix(TITLE)?;
    let field = |name: &str| {
        let values = text.lines().filter_map(|line| line.split_once(' '));
        values
            .filter(|(found, _)| *found == name)
            .map(|(_, value)| value)
            .next()
    };
    let owner: leasehold::look::Owner = field("owner")?.parse().ok()?;
    let mut holder = Holder::of(owner, read_mode(field("mode")?)?);
    holder.fence = Fence::new(field("fence")?.parse().ok()?);
    let client = ClientInfo::new(
        owner.client(),
        plain(field("host")?),
        field("pid")?.parse().ok()?,
        plain(field("program")?),
        WallTime::from_micros(field("since")?.parse().ok()?),
    );
    // A version without these fields wrote the record, or the client does not say them.
    let [user, label, command] = ["user", "label", "command"].map(|name| field(name).map(plain));
    holder.client = Some(
        client
            .with_user(user.as_deref())
            .with_label(label.as_deref())
            .with_command(command.as_deref()),
    );
    Some(holder)
}

/// A mode as it is displayed.
fn read_mode(text: &str) -> Option<Mode> {
    let permits = |count: &str| Permits::new(count.parse().ok()?).ok();
    match text.split_once(" of ") {
        None if text == "exclusive" => Some(Mode::Exclusive),
        None if text == "shared" => Some(Mode::Shared),
        Some(("permit", count)) => permits(count).map(Mode::Permit),
        _ => None,
    }
}

const TITLE: &str = "leasehold holder 1";
const CHECKSUM: &str = "checksum ";
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// The most bytes of host and of program. With all texts as long as they may be, the record still fits into
/// its place.
const NAME_MAX: usize = 192;

/// `text` on one line, cut at a whole character.
fn shortened(text: &str, bytes_max: usize) -> String {
    let mut short = String::new();
    for char in text.chars() {
        let length = short.len();
        match char.is_ascii() {
            true => short.extend(utf8_percent_encode(char.encode_utf8(&mut [0; 4]), ESCAPED)),
            false => short.push(char),
        }
        if short.len() > bytes_max {
            short.truncate(length);
            break;
        }
    }
    short
}

fn plain(escaped: &str) -> String {
    printable(&percent_decode_str(escaped).decode_utf8_lossy())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use leasehold::Key;
    use leasehold::env::SystemEntropy;
    use leasehold::look::{ClientId, Owner};

    use super::*;

    fn request(host: &str, program: &str) -> LockRequest {
        let id = ClientId::random(&SystemEntropy);
        let since = WallTime::from_micros(u64::MAX);
        let client = ClientInfo::new(id, host.into(), u32::MAX, program.into(), since);
        request_of(client)
    }

    fn request_of(client: ClientInfo) -> LockRequest {
        let id = client.id;
        LockRequest::new(
            Key::new("deploy").unwrap(),
            Owner::random(id, &SystemEntropy),
            Duration::from_secs(1),
            WallTime::from_micros(1),
            Arc::new(client),
        )
    }

    #[test]
    fn a_holder_survives_its_record() {
        let permits = [1, 3, Permits::MAX].map(|count| Permits::new(count).unwrap());
        let shared = [Mode::Exclusive, Mode::Shared];
        for mode in shared.into_iter().chain(permits.map(Mode::Permit)) {
            let request = request("höst 1", "100 % owner forged").with_mode(mode);
            let holder = decode(&encode(&request, Fence::MAX)).unwrap();
            assert_eq!(holder.mode, mode);
            assert_eq!(holder.owner, Some(request.owner));
            assert_eq!(holder.client.as_ref(), Some(&*request.client));
            assert_eq!(holder.fence, Some(Fence::MAX));
            assert_eq!(holder.remaining, None);
        }
    }

    #[test]
    fn hostile_program_name_stays_on_one_line() {
        let request = request("host", "100 %\nowner forged\u{202e}");
        let holder = decode(&encode(&request, Fence::MAX)).unwrap();
        let program = holder.client.unwrap().program;
        assert_eq!(program, "100 %\u{fffd}owner forged\u{fffd}");
    }

    #[test]
    fn unknown_mode_of_a_later_version_is_rejected() {
        for text in [
            "",
            "intent",
            "permit of 0",
            "permit of 129",
            "permit of x",
            "lease of 3",
        ] {
            assert_eq!(read_mode(text), None, "{text}");
        }
    }

    #[test]
    fn names_of_any_length_fit() {
        let most = Mode::Permit(Permits::new(Permits::MAX).unwrap());
        for long in ["ü".repeat(1000), "%".repeat(1000), "x".repeat(1000)] {
            let client = (*request(&long, &long).client).clone();
            let client = client
                .with_user(Some(&long))
                .with_label(Some(&long))
                .with_command(Some(&long));
            let request = request_of(client).with_mode(most);
            let holder = decode(&encode(&request, Fence::MAX)).unwrap();
            let client = holder.client.unwrap();
            assert!(client.host.len() >= 64 && long.starts_with(&client.host));
            let command = client.command.unwrap();
            assert!(long.starts_with(&*command), "{command}");
            if !long.starts_with('%') {
                assert_eq!(command.len(), ClientInfo::COMMAND_MAX);
                assert_eq!(client.label.unwrap().len(), ClientInfo::LABEL_MAX);
            }
        }
    }

    #[test]
    fn record_names_user_label_and_command() {
        let client = (*request("host", "leasehold").client).clone();
        let client = client
            .with_user(Some("ann"))
            .with_label(Some("100 %"))
            .with_command(Some("backup  ü\n"));
        let holder = decode(&encode(&request_of(client.clone()), Fence::MAX)).unwrap();
        assert_eq!(holder.client, Some(client));
    }

    #[test]
    fn incomplete_record_is_ignored() {
        let whole = encode(&request("host", "program"), Fence::MAX);
        let end = whole.iter().position(|byte| *byte == 0).unwrap();
        for cut in 0..end {
            let mut torn = whole;
            torn[cut..].fill(0);
            assert_eq!(decode(&torn), None, "cut at {cut}");
            let mut flipped = whole;
            flipped[cut] ^= 4;
            assert_eq!(decode(&flipped), None, "flipped at {cut}");
        }
        assert_eq!(decode(&[0; LENGTH]), None);
        assert_eq!(decode(&[]), None);
    }

    #[test]
    fn seats_follow_the_length_of_the_file() {
        assert_eq!(seats_in(0), 0);
        assert_eq!(seats_in(offset(0)), 0);
        assert_eq!(seats_in(offset(0) + 1), 1);
        assert_eq!(seats_in(offset(3)), 3);
        assert_eq!(seats_in(u64::MAX), SEATS);
    }
}
