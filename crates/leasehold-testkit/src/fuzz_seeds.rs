use std::panic::catch_unwind;
use std::path::Path;

/// Runs `parse` on every seed in `fuzz/seeds/TARGET`, and on `count` mutations of each. The mutations are
/// the same each time.
///
/// # Panics
///
/// If there is no seed, or if `parse` panics. The message shows the input.
pub fn feed_seeds(target: &str, count: u64, parse: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let folder = folder.join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    // The files of a folder have no order.
    paths.sort();
    assert!(!paths.is_empty(), "no seeds in {folder:?}");
    let read = |path| std::fs::read(path).expect("a seed");
    let seeds: Vec<Vec<u8>> = paths.iter().map(read).collect();
    for (path, seed) in paths.iter().zip(&seeds) {
        try_out(parse, seed, path);
        let mut random = Random(seed.len() as u64);
        for _ in 0..count {
            let mut bytes = seed.clone();
            for _ in 0..=random.below(3) {
                mutate(&mut bytes, &seeds, &mut random);
            }
            try_out(parse, &bytes, path);
        }
    }
}

fn try_out(parse: fn(&[u8]), bytes: &[u8], seed: &Path) {
    let is_fine = catch_unwind(|| parse(bytes)).is_ok();
    let shown = bytes.escape_ascii();
    assert!(is_fine, "panicked on b\"{shown}\", from the seed {seed:?}");
}

/// Tokens that mean something to some format, and numbers at the ends of their ranges.
const TOKENS: [&[u8]; 16] = [
    b"\0",
    b"\r\n",
    b" ",
    b":",
    b".",
    b"%",
    b"\xff",
    b"\xc3\xa9",
    b"-1",
    b"0",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551615",
    b"18446744073709551616",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"1e308",
];

fn mutate(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let end = at + random.below(bytes.len() - at + 1).min(16);
    match random.below(7) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..end)),
        2 => drop(bytes.splice(at..end, TOKENS[random.below(TOKENS.len())].iter().copied())),
        3 => {
            let copy = bytes[at..end].to_vec();
            drop(bytes.splice(at..at, copy));
        }
        4 => {
            let other = &seeds[random.below(seeds.len())];
            let from = random.below(other.len() + 1);
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        5 => {
            // A whole number becomes another one.
            let is_digit = |byte: &u8| byte.is_ascii_digit();
            let digits = bytes[at..].iter().take_while(|byte| is_digit(byte)).count();
            let number = TOKENS[8 + random.below(6)].iter().copied();
            drop(bytes.splice(at..at + digits, number));
        }
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end.max(1) as u64) as usize
    }
}
